//! Calls: required and optional ones, whole and streamed, beside the most generous reading of the replies
//! without any grammar.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cases::{self, Call, Case, IRRELEVANCE, Scores};
use super::models::Model;
use super::service::{Program, Reply, Service};

/// Mode of the requests.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    choice: &'static str,
    streamed: bool,
    /// Counts every JSON object in the text that names a declared tool.
    generous: bool,
}

const MODES: &[Mode] = &[
    Mode { name: "text, read generously", choice: "none", streamed: false, generous: true },
    Mode { name: "`auto`", choice: "auto", streamed: false, generous: false },
    Mode { name: "`required`", choice: "required", streamed: false, generous: false },
    Mode { name: "`required`, streamed", choice: "required", streamed: true, generous: false },
];

/// With a note on the syntax of calls after the instructions.
const NOTED_MODES: &[Mode] = &[
    Mode { name: "`auto`, with a note", choice: "auto", streamed: false, generous: false },
    Mode { name: "`required`, with a note", choice: "required", streamed: false, generous: false },
];

const LLAMA_CPP_MODES: &[Mode] = &[
    Mode { name: "llama.cpp, `auto`", choice: "auto", streamed: false, generous: false },
    Mode { name: "llama.cpp, `required`", choice: "required", streamed: false, generous: false },
];

/// Row of the table.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub mode: String,
    pub scores: Scores,
    pub reasoned: usize,
    pub repeated: usize,
    pub cut: usize,
    pub refused: usize,
    /// Sum over the replies of the probability that the mask removed at the first token, and their number.
    pub removed: (f64, usize),
}

/// Runs all modes.
pub fn measure(model: &Model, service: &Service, cases: &[Case]) -> Result<Vec<Row>> {
    let modes = if service.program == Program::Lm { MODES } else { LLAMA_CPP_MODES };
    modes.iter().map(|mode| row(model, *mode, service, cases)).collect()
}

/// Runs the modes of a server that adds a note on the syntax of calls.
pub fn measure_with_note(model: &Model, service: &Service, cases: &[Case]) -> Result<Vec<Row>> {
    NOTED_MODES.iter().map(|mode| row(model, *mode, service, cases)).collect()
}

fn row(model: &Model, mode: Mode, service: &Service, cases: &[Case]) -> Result<Row> {
    // A question that no tool fits has no right call.
    let asked = |case: &&Case| mode.choice != "required" || case.category != IRRELEVANCE;
    let cases: Vec<Case> = cases.iter().filter(asked).cloned().collect();
    let mut row = Row {
        model: model.name.to_owned(),
        mode: mode.name.to_owned(),
        scores: Scores::new(),
        reasoned: 0,
        repeated: 0,
        cut: 0,
        refused: 0,
        removed: (0.0, 0),
    };
    let mut calls = Vec::new();
    for case in &cases {
        let reply = match service.reply(request(case, mode), mode.streamed) {
            Ok(reply) => reply,
            Err(error) => {
                println!("{}: {error:#}", case.id);
                row.refused += 1;
                Reply::default()
            }
        };
        row.reasoned += usize::from(!reply.reasoning.is_empty());
        row.repeated += usize::from(reply.repeats_a_call());
        row.cut += usize::from(reply.finish == "length");
        if let Some(removed) = reply.removed {
            row.removed = (row.removed.0 + removed, row.removed.1 + 1);
        }
        calls.push(if mode.generous { generous(&reply.text, &case.value)? } else { reply.calls });
    }
    row.scores = cases::score(&cases, &calls)?;
    println!("{}: {:?}", mode.name, row.scores);
    Ok(row)
}

fn request(case: &Case, mode: Mode) -> Value {
    let mut request = json!({"messages": case.value["messages"], "tools": case.value["tools"]});
    request["tool_choice"] = mode.choice.into();
    request
}

/// Every JSON object in a text that names a declared tool, as a call.
fn generous(text: &str, case: &Value) -> Result<Vec<Call>> {
    let tools = case["tools"].as_array().context("a case without tools")?;
    let names: BTreeSet<&str> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let mut values = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                rest = &rest[start + values.byte_offset()..];
                let name = value["name"].as_str().filter(|name| names.contains(name));
                let call = |name: &str| Call { name: name.to_owned(), arguments: value["arguments"].clone() };
                calls.extend(name.map(call));
            }
            _ => rest = &rest[start + 1..],
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generous_reading_finds_objects_of_declared_tools() {
        let case = json!({"tools": [{"function": {"name": "f"}}]});
        let text = "{ ```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n``` or {\"name\": \"g\"}";
        let calls = generous(text, &case).expect("a case");
        assert_eq!(calls, [Call { name: "f".to_owned(), arguments: json!({"a": 1}) }]);
    }
}
