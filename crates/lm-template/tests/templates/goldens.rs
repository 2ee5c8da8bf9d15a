//! Every reference rendering: 109 published templates, 91 conversations each.

use std::collections::HashMap;

use lm_template::{ContinueField, Error, GenerationPrompt, Prompt, PromptTemplate, RenderInput};
use serde_json::{Map, Value};

use crate::shared;

/// Templates with renderings that differ, and why.
const KNOWN: &[(&str, &str)] = &[
    ("meetkai-functionary-medium-v3.1", "`safe` + text escapes the other operand to HTML entities in Jinja2"),
    ("meetkai-functionary-medium-v3.2", "the engine's `~` writes 1e-05 as 0.00001"),
    ("vllm-llama3.2_pythonic", "the engine's `loop.last` is false over a string (arguments given as text)"),
    ("vllm-llama4_pythonic", "the engine's `loop.last` is false over a string (arguments given as text)"),
];

/// How one case went.
#[derive(Debug, PartialEq)]
enum Outcome {
    Equal,
    /// A template that fails in Jinja2 renders here: more lenient, no wrong text where there is one.
    Lenient,
    Wrong(String),
}

struct Case<'a> {
    conversation: &'a Value,
    variant: &'a Value,
    expected: &'a Value,
}

fn render(template: &PromptTemplate, case: &Case<'_>) -> Result<Prompt, Error> {
    let Case { conversation, variant, .. } = case;
    let mut extra_context = Map::from_iter([("documents".to_owned(), conversation["documents"].clone())]);
    extra_context.extend(variant["kwargs"].as_object().cloned().unwrap_or_default());
    let add = variant["add_generation_prompt"] == true;
    let input = RenderInput {
        messages: conversation["messages"].as_array().expect("a list of messages"),
        tools: &conversation["tools"],
        generation_prompt: if add { GenerationPrompt::Add } else { GenerationPrompt::Omit },
        extra_context: &extra_context,
    };
    match &variant["continue_final_message"] {
        Value::Bool(true) => template.render_to_continue(&input, ContinueField::Content),
        Value::String(field) => template.render_to_continue(&input, ContinueField::Named(field)),
        _ => template.render(&input),
    }
}

fn compare(rendered: Result<Prompt, Error>, expected: &Value) -> Outcome {
    let error = &expected["error"];
    let fits = |got: &Error| match error["kind"].as_str() {
        Some("raised") => matches!(got, Error::TemplateRaised { message } if error["message"] == *message),
        Some("continue_final_message") => matches!(got, Error::ContinueFinalMessage { .. }),
        Some("empty_conversation") => *got == Error::EmptyConversation,
        Some(_) => true,
        None => false,
    };
    match (rendered, expected["expected"].as_str()) {
        (Ok(prompt), Some(text)) if prompt.text() == text => Outcome::Equal,
        (Ok(prompt), Some(text)) => Outcome::Wrong(format!("got\n{}\nexpected\n{text}", prompt.text())),
        (Err(got), None) if fits(&got) => Outcome::Equal,
        (Ok(_), None) if error["kind"] == "runtime" => Outcome::Lenient,
        (Ok(_), None) => Outcome::Wrong(format!("rendered, expected {error}")),
        (Err(got), _) => Outcome::Wrong(format!("{got}, expected {expected}")),
    }
}

fn spans_fit(prompt: &Prompt, expected: &Value) -> bool {
    let Some(spans) = expected["assistant_spans"].as_array() else { return true };
    let text = prompt.text();
    let characters = |byte: usize| text[..byte].chars().count();
    let got = prompt
        .generation
        .iter()
        .map(|range| Value::from(vec![characters(range.start), characters(range.end)]));
    got.eq(spans.iter().cloned())
}

#[test]
fn reference_renderings() {
    let Some(folder) = shared::path("goldens") else { return };
    let index = shared::json(folder.join("templates/index.json"));
    let conversations: HashMap<String, Value> = std::fs::read_dir(folder.join("conversations"))
        .unwrap()
        .map(|entry| shared::json(entry.unwrap().path()))
        .map(|conversation| (conversation["name"].as_str().unwrap().to_owned(), conversation))
        .collect();
    let (mut equal, mut lenient, mut total) = (0, 0, 0);
    let mut incomplete: Vec<String> = Vec::new();
    for row in index["templates"].as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let source = std::fs::read_to_string(folder.join(format!("templates/{id}.jinja"))).unwrap();
        let template = PromptTemplate::new(&source).map(|template| {
            template
                .with_context(row["context"].as_object().cloned().unwrap_or_default())
                .with_time("2025-03-14T15:09:26".parse().unwrap())
        });
        let golden = shared::json(folder.join(format!("expected/{id}.json")));
        let mut wrong = Vec::new();
        for expected in golden["cases"].as_array().unwrap() {
            let conversation = &conversations[expected["scenario"].as_str().unwrap()];
            let variants = conversation["variants"].as_array().unwrap();
            let variant = variants.iter().find(|variant| variant["name"] == expected["variant"]).unwrap();
            let case = Case { conversation, variant, expected };
            let rendered =
                template.as_ref().map_err(Clone::clone).and_then(|template| render(template, &case));
            let spans = rendered.as_ref().is_ok_and(|prompt| !spans_fit(prompt, case.expected));
            total += 1;
            match compare(rendered, case.expected) {
                Outcome::Equal if spans => wrong.push(format!("{id} {} spans", expected["scenario"])),
                Outcome::Equal => equal += 1,
                Outcome::Lenient => lenient += 1,
                Outcome::Wrong(how) => {
                    wrong.push(format!("{id} {}/{}: {how}", expected["scenario"], expected["variant"]))
                }
            }
        }
        if !wrong.is_empty() {
            println!("{id}: {} wrong, first: {}", wrong.len(), wrong[0]);
            incomplete.push(id.to_owned());
        }
    }
    println!("{equal} of {total} renderings equal, {lenient} more lenient, not complete: {incomplete:?}");
    incomplete.sort_unstable();
    assert_eq!(incomplete, KNOWN.iter().map(|(id, _)| *id).collect::<Vec<_>>());
}
