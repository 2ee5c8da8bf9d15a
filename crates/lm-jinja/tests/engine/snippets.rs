//! Small template snippets, against Jinja2 as configured by transformers.

use lm_jinja::{Clock, Error, Map, RenderOptions, Template, Value};

use crate::shared;

fn render(source: &str, context: &Map<String, Value>, now: &str) -> Result<String, Error> {
    let clock = Clock::Fixed(now.parse().expect("a time"));
    let options = RenderOptions { clock, ..RenderOptions::default() };
    Ok(Template::new(source)?.render(context, &options)?.text().to_owned())
}

/// Renders every case of a file at the time `now`, and lists those that differ.
fn check(name: &str, data: &Value, now: &str, expected: impl Fn(&Value) -> Option<&str>) {
    let context = data["context"].as_object().expect("an object");
    let mut different = Vec::new();
    let cases = data["cases"].as_array().expect("a list");
    for case in cases {
        let source = case["template"].as_str().expect("a text");
        match (render(source, context, now), expected(case)) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) => {}
            (got, expected) => different.push(format!("{source:?}: {got:?}, expected {expected:?}")),
        }
    }
    println!("{name}: {} of {} equal", cases.len() - different.len(), cases.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn reference_snippets() {
    let Some(path) = shared::path("goldens/expressions.json") else { return };
    check("shared snippets", &shared::json(path), "2025-03-14T15:09:26", |case| case["expected"].as_str());
}

/// Python's behaviour on text, numbers and formats, in more corner cases than published templates have.
#[test]
fn own_snippets() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/templates/jinja.json");
    check("own snippets", &shared::json(path.into()), "2025-03-04T05:09:26.053589", |case| {
        case["text"].as_str()
    });
}

/// The examples of the filter in Jinja's documentation.
#[test]
fn truncate_keeps_texts_within_leeway() {
    for (arguments, expected) in [
        ("9", "foo..."),
        ("9, true", "foo ba..."),
        ("11", "foo bar baz qux"),
        ("11, false, '...', 0", "foo bar..."),
    ] {
        let source = format!("{{{{ 'foo bar baz qux' | truncate({arguments}) }}}}");
        let text = render(&source, &Map::new(), "2025-03-14T15:09:26").expect("it renders");
        assert_eq!(text, expected, "{arguments}");
    }
}
