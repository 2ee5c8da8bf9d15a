//! Arbitrary messages, tools and variables, rendered by templates that use them like published ones.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_template::{ContinueField, GenerationPrompt, Origin, PromptTemplate, RenderInput, Value};

/// Templates without `<`: a `<` in template text is content that was mistaken for it.
const SOURCES: [&str; 4] = [
    "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[/]{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
    "{% macro show(v) %}{% if v is mapping %}{% for k, x in v | dictsort %}{{ k }}:{{ show(x) }},{% endfor %}\
     {% elif v is iterable and v is not string %}{% for x in v %}{{ show(x) }};{% endfor %}\
     {% else %}{{ v }}{% endif %}{% endmacro %}{{ show(messages) }}{{ show(tools) }}",
    "{{ tools | tojson(indent=2) }}{% for m in messages %}{{ m | tojson }}{{ m.content[1:-1] }}{{ m.content.split('|')[-1] }}\
     {{ m.content | string | replace('a', 'b') | upper | indent(2) }}{{ m.role ~ m.content }}{% endfor %}",
    "{% for m in messages %}{% for part in m.content %}{{ part.text or part }}{{ loop.last }}{% endfor %}\
     {{ (m.content | string).strip() + m.name | default('-') }}{{ '%s|%r' | format(m.content, m) }}{% endfor %}",
];

static TEMPLATES: LazyLock<Vec<PromptTemplate>> = LazyLock::new(|| {
    SOURCES.iter().map(|source| PromptTemplate::new(source).expect("a template that compiles")).collect()
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(input) = serde_json::from_slice::<Value>(bytes) else { return Corpus::Reject };
    let messages = input["messages"].as_array().cloned().unwrap_or_else(|| vec![input.clone()]);
    let variables = input["kwargs"].as_object().cloned().unwrap_or_default();
    let variables = variables.into_iter().filter(|(_, value)| !value.to_string().contains('<')).collect();
    let input = RenderInput {
        messages: &messages,
        tools: &input["tools"],
        generation_prompt: GenerationPrompt::Add,
        extra_context: &variables,
    };
    for template in TEMPLATES.iter() {
        let rendered = [template.render(&input), template.render_to_continue(&input, ContinueField::Content)];
        for segment in rendered.iter().flatten().flat_map(|prompt| &prompt.segments) {
            let from_content = segment.origin == Origin::Template && segment.text.contains('<');
            assert!(!from_content, "content as template text: {segment:?}");
        }
    }
    Corpus::Keep
});
