//! Small pieces of templates, against Jinja2 as transformers sets it up.

use lm_template::{Error, Map, PromptTemplate, Value};

use crate::shared;

fn render(source: &str, context: &Map<String, Value>) -> Result<String, Error> {
    let template = PromptTemplate::new(source)?.with_time("2025-03-14T15:09:26".parse().expect("a time"));
    Ok(template.render_variables(context)?.text())
}

#[test]
fn reference_snippets() {
    let Some(path) = shared::path("goldens/expressions.json") else { return };
    let data = shared::json(path);
    let context = data["context"].as_object().unwrap();
    let mut different = Vec::new();
    let cases = data["cases"].as_array().unwrap();
    for case in cases {
        let source = case["template"].as_str().unwrap();
        match (render(source, context), case["expected"].as_str()) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) => {}
            (got, expected) => different.push(format!("{source:?}: {got:?}, expected {expected:?}")),
        }
    }
    println!("snippets: {} of {} equal", cases.len() - different.len(), cases.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}
