//! Templates that do not compile, fail, refuse, or would never end.

use lm_template::{Error, GenerationPrompt, PromptTemplate, RenderInput, Value};
use serde_json::{Map, json};

fn render(source: &str) -> Result<String, Error> {
    let template = PromptTemplate::new(source)?;
    let messages = [json!({"role": "user", "content": "hi"})];
    let extra_context = Map::new();
    let input = RenderInput {
        messages: &messages,
        tools: &Value::Null,
        generation_prompt: GenerationPrompt::Add,
        extra_context: &extra_context,
    };
    Ok(template.render(&input)?.text())
}

#[test]
fn errors_name_the_line() {
    for (source, line) in [("{% if %}", 1), ("a\nb {{ }", 2), ("a\n\n{% endfor %}", 3), ("{{ 'x", 1)] {
        let error = PromptTemplate::new(source).unwrap_err();
        assert!(matches!(error, Error::TemplateSyntax { line: got, .. } if got == line), "{source}: {error}");
    }
    let error = render("a\n{{ messages.nothing.there }}").unwrap_err();
    assert!(matches!(error, Error::TemplateRuntime { line: 2, .. }), "{error}");
    let error = render("{{ raise_exception('no') }}").unwrap_err();
    assert_eq!(error, Error::TemplateRaised { message: "no".to_owned() });
}

#[test]
fn endless_templates_end() {
    let loops =
        "{% for a in range(10000) %}{% for b in range(10000) %}{% set x = a %}{% endfor %}{% endfor %}";
    assert!(matches!(render(loops), Err(Error::TemplateLimit { what: "instructions", .. })));
    let output = "{% for a in range(100) %}{{ 'x' * 1000000 }}{% endfor %}";
    assert!(matches!(render(output), Err(Error::TemplateLimit { what: "bytes of output", .. })));
    let recursion = "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}";
    assert!(matches!(render(recursion), Err(Error::TemplateRuntime { .. })));
    assert!(matches!(render("{{ 'x'.ljust(10000000000) }}"), Err(Error::TemplateRuntime { .. })));
}

#[test]
fn an_empty_conversation_is_refused() {
    let template = PromptTemplate::new("x").unwrap();
    let extra_context = Map::new();
    let input = RenderInput {
        messages: &[],
        tools: &Value::Null,
        generation_prompt: GenerationPrompt::Add,
        extra_context: &extra_context,
    };
    assert_eq!(template.render(&input).unwrap_err(), Error::EmptyConversation);
}
