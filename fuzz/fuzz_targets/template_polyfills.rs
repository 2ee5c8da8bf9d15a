//! Arbitrary messages and tools, with polyfills for templates that lack a feature: without a reported
//! polyfill the prompt is unchanged.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_template::{
    GenerationPrompt, Origin, PolyfilledTemplate, Polyfills, PromptTemplate, RenderInput, Value,
};

/// Templates that lack, in different ways, a system role, tools, tool calls, results, texts in parts; without
/// `<`, as in `template_context`.
const SOURCES: [&str; 4] = [
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}",
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}\
     [{{ m.role }}]{{ m.content | trim }}{% endfor %}",
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('in turns') }}{% endif %}\
     {{ m.role }}:{{ m.content + '.' }}{% endfor %}",
    "{{ tools | tojson }}{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}\
     {{ c.function.name }}{% for k, v in c.function.arguments | items %}{{ k }}={{ v }};{% endfor %}{% endfor %}{% endfor %}",
];

static TEMPLATES: LazyLock<Vec<PolyfilledTemplate>> = LazyLock::new(|| {
    let template = |source: &&str| PromptTemplate::new(source).expect("a template that compiles");
    SOURCES.iter().map(|source| PolyfilledTemplate::new(template(source), Polyfills::default())).collect()
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(input) = serde_json::from_slice::<Value>(bytes) else { return Corpus::Reject };
    let messages = input["messages"].as_array().cloned().unwrap_or_else(|| vec![input.clone()]);
    let input = RenderInput {
        messages: &messages,
        tools: &input["tools"],
        generation_prompt: GenerationPrompt::Omit,
        extra_context: &Default::default(),
    };
    for template in TEMPLATES.iter() {
        let Ok(rendered) = template.render(&input) else { continue };
        if rendered.polyfills.is_empty() {
            let plain =
                template.template().render(&input).expect("as with polyfills, none of which was applied");
            assert_eq!(rendered.prompt.text(), plain.text());
            for segment in rendered.prompt.segments {
                assert!(segment.origin != Origin::Template || !segment.text.contains('<'), "{segment:?}");
            }
        }
    }
    Corpus::Keep
});
