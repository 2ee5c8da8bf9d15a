//! Every reference rendering: 109 published templates, 91 conversations each.

use std::collections::HashMap;
use std::path::Path;

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

fn render(template: &PromptTemplate, conversation: &Value, variant: &Value) -> Result<Prompt, Error> {
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

/// How the cases of a template went.
#[derive(Default)]
struct Tally {
    equal: usize,
    lenient: usize,
    wrong: Vec<String>,
}

fn check_case(
    template: &Result<PromptTemplate, Error>,
    conversations: &HashMap<String, Value>,
    expected: &Value,
) -> Outcome {
    let conversation = &conversations[expected["scenario"].as_str().expect("a name")];
    let variants = conversation["variants"].as_array().expect("a list of variants");
    let variant =
        variants.iter().find(|variant| variant["name"] == expected["variant"]).expect("a known variant");
    let rendered =
        template.as_ref().map_err(Clone::clone).and_then(|template| render(template, conversation, variant));
    if rendered.as_ref().is_ok_and(|prompt| !spans_fit(prompt, expected)) {
        return Outcome::Wrong("other spans of generated text".to_owned());
    }
    compare(rendered, expected)
}

fn check_template(folder: &Path, row: &Value, conversations: &HashMap<String, Value>) -> Tally {
    let id = row_id(row);
    let source = std::fs::read_to_string(folder.join(format!("templates/{id}.jinja"))).expect("a template");
    let template = PromptTemplate::new(&source).map(|template| {
        let context = row["context"].as_object().cloned().unwrap_or_default();
        template.with_context(context).with_time("2025-03-14T15:09:26".parse().expect("a time"))
    });
    let golden = shared::json(folder.join(format!("expected/{id}.json")));
    let mut tally = Tally::default();
    for expected in golden["cases"].as_array().expect("a list of cases") {
        match check_case(&template, conversations, expected) {
            Outcome::Equal => tally.equal += 1,
            Outcome::Lenient => tally.lenient += 1,
            Outcome::Wrong(how) => {
                tally.wrong.push(format!("{id} {}/{}: {how}", expected["scenario"], expected["variant"]));
            }
        }
    }
    tally
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
    let rows = index["templates"].as_array().unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check = |row| (row_id(row), check_template(&folder, row, &conversations));
    let check = &check;
    let tallies: Vec<(&str, Tally)> = std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(threads));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(check).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let (equal, lenient) =
        tallies.iter().fold((0, 0), |(e, l), (_, tally)| (e + tally.equal, l + tally.lenient));
    let wrong: Vec<&String> = tallies.iter().flat_map(|(_, tally)| &tally.wrong).collect();
    println!("{equal} renderings equal, {lenient} more lenient, {} wrong", wrong.len());
    let mut incomplete: Vec<&str> =
        tallies.iter().filter(|(_, t)| !t.wrong.is_empty()).map(|(id, _)| *id).collect();
    incomplete.sort_unstable();
    assert_eq!(incomplete, KNOWN.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "{wrong:#?}");
}

fn row_id(row: &Value) -> &str {
    row["id"].as_str().expect("an id")
}
