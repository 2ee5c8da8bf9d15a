//! Formatted answers: the value under a format beside the one in a free answer.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::models::Model;
use super::service::Service;

/// Questions with one short answer: the text, the right answer, and the other choices.
const QUESTIONS: &[(&str, &str, [&str; 3])] = &[
    ("What is the capital of France?", "Paris", ["Rome", "Madrid", "Berlin"]),
    ("What is the capital of Japan?", "Tokyo", ["Kyoto", "Seoul", "Beijing"]),
    ("Which planet is known as the red planet?", "Mars", ["Venus", "Jupiter", "Saturn"]),
    ("What colour is the sky on a clear day?", "blue", ["green", "red", "yellow"]),
    ("Which animal barks?", "dog", ["cat", "cow", "horse"]),
    ("How many days has a week?", "7", ["5", "6", "8"]),
    ("How many legs has a spider?", "8", ["4", "6", "10"]),
    ("What is 2 + 3?", "5", ["4", "6", "7"]),
    ("What is 10 - 4?", "6", ["5", "7", "8"]),
    ("Which language is spoken in Brazil?", "Portuguese", ["Spanish", "English", "French"]),
    ("What is the opposite of hot?", "cold", ["warm", "wet", "dry"]),
    ("Which metal is liquid at room temperature?", "mercury", ["iron", "gold", "copper"]),
    ("What gas do plants take in?", "carbon dioxide", ["oxygen", "nitrogen", "helium"]),
    ("Which season comes after winter?", "spring", ["summer", "autumn", "fall"]),
    ("In which continent is Egypt?", "Africa", ["Asia", "Europe", "America"]),
    ("What is the first month of the year?", "January", ["March", "June", "December"]),
];

/// Row of the table.
pub struct Row {
    pub model: &'static str,
    pub format: &'static str,
    pub right: usize,
    pub all: usize,
    pub invalid: usize,
}

/// Asks all questions, free and in each format.
pub fn measure(model: &Model, path: &Path, limit: usize) -> Result<Vec<Row>> {
    let service = Service::start(path)?;
    let formats: [(&str, Format); 4] = [
        ("free", Format::Free),
        ("choice", Format::Choice),
        ("regex", Format::Regex),
        ("JSON Schema", Format::Json),
    ];
    formats.into_iter().map(|(name, format)| row(model, name, format, &service, limit)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Free,
    Choice,
    Regex,
    Json,
}

fn row(model: &Model, name: &'static str, format: Format, service: &Service, limit: usize) -> Result<Row> {
    let mut row = Row { model: model.name, format: name, right: 0, all: 0, invalid: 0 };
    for (question, right, others) in QUESTIONS.iter().take(limit) {
        let reply = service.reply(request(question, right, others, format), false)?;
        row.all += 1;
        let answer = match format {
            Format::Json => serde_json::from_str::<Value>(&reply.text)
                .ok()
                .and_then(|value| value["answer"].as_str().map(str::to_owned)),
            _ => Some(reply.text.clone()),
        };
        let valid = reply.finish == "stop"
            && match format {
                Format::Free => true,
                Format::Choice => {
                    answer.as_deref().is_some_and(|text| text == *right || others.contains(&text))
                }
                Format::Regex => answer.as_deref().is_some_and(is_short),
                Format::Json => answer.is_some(),
            };
        row.invalid += usize::from(!valid);
        let says = |text: &String| {
            let text = text.to_lowercase();
            text.contains(&right.to_lowercase())
                && !others.iter().any(|other| text.contains(&other.to_lowercase()))
        };
        row.right += usize::from(answer.as_ref().is_some_and(says));
    }
    println!("{name}: {} of {}", row.right, row.all);
    Ok(row)
}

/// A text that the regular expression of [`request`] allows.
fn is_short(text: &str) -> bool {
    (1..=60).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ')
}

fn request(question: &str, right: &str, others: &[&str; 3], format: Format) -> Value {
    let content = format!("{question} Answer with one word or number.");
    let mut request = json!({"messages": [{"role": "user", "content": content}]});
    let mut choices = vec![right];
    choices.extend(others);
    choices.sort_unstable();
    match format {
        Format::Free => {}
        Format::Choice => request["structured_outputs"] = json!({"choice": choices}),
        Format::Regex => request["structured_outputs"] = json!({"regex": "[A-Za-z0-9 ]{1,60}"}),
        Format::Json => {
            let schema = json!({
                "type": "object",
                "properties": {"answer": {"type": "string"}},
                "required": ["answer"],
                "additionalProperties": false,
            });
            request["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        }
    }
    request
}
