//! Small pieces of templates, against Jinja2 as transformers sets it up.

use lm_template::{Error, GenerationPrompt, Map, PromptTemplate, RenderInput, Value};

use crate::shared;

/// Snippets that come out otherwise: what no published template here uses and the engine lacks (`%` on strings, rare
/// filters and methods, how Python prints ranges and views), and two that ask whether `tools` is there at all.
const DIFFERENT: usize = 20;

fn render(source: &str, context: &Map<String, Value>) -> Result<String, Error> {
    let template = PromptTemplate::new(source)?.with_time("2025-03-14T15:09:26".parse().expect("a time"));
    let input = RenderInput {
        messages: &[],
        tools: &Value::Null,
        generation_prompt: GenerationPrompt::Omit,
        extra_context: context,
    };
    Ok(template.render_as_is(&input)?.text())
}

#[test]
fn reference_snippets() {
    let Some(path) = shared::path("goldens/expressions.json") else { return };
    let data = shared::json(path);
    let context = data["context"].as_object().unwrap();
    let (mut different, mut lenient) = (Vec::new(), 0);
    for case in data["cases"].as_array().unwrap() {
        let source = case["template"].as_str().unwrap();
        match (render(source, context), case["expected"].as_str()) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) => {}
            (Ok(_), None) => lenient += 1,
            (got, expected) => different.push(format!("{source:?}: {got:?}, expected {expected:?}")),
        }
    }
    println!("{} different, {lenient} more lenient:\n{}", different.len(), different.join("\n"));
    assert_eq!(different.len(), DIFFERENT);
}
