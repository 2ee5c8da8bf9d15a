//! The commands of docs/openai-flow.md, with answers of the form that is shown there.

use std::path::Path;
use std::process::Command;

use crate::support::Running;
use lm_server::ServerConfig;
use lm_session::EngineSettings;
use serde_json::{Map, Value, json};

const DOCS: &str = "../../docs/openai-flow.md";

/// Fields whose values are compared, too.
const CONSTANT: [&str; 7] = ["role", "object", "finish_reason", "name", "type", "index", "prompt_tokens"];

#[test]
fn documented_commands_have_documented_responses() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: there is no curl");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCS);
    let markdown = std::fs::read_to_string(path).expect("the documentation");
    let blocks = blocks(&markdown);
    let server = Running::embedded(EngineSettings::default(), ServerConfig::default());
    let [(_, "lm serve\n"), (_, tools), transcripts @ ..] = &blocks[..] else { panic!("no commands") };
    assert_eq!(transcripts.len(), 8, "four commands with their answers");
    for transcript in transcripts.chunks(2) {
        let [("sh", command), (_, documented)] = transcript else { panic!("{transcript:?}") };
        let command = format!("{tools}\n{command}").replace("127.0.0.1:8080", &server.addr.to_string());
        let output = Command::new("sh").args(["-c", &command]).output().expect("it runs");
        let answer = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(form(&answer), form(documented), "{command}\n{answer}");
    }
}

/// Languages and texts of the code blocks.
fn blocks(markdown: &str) -> Vec<(&str, &str)> {
    markdown.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

/// Form of an answer: that of its object, or those of its events without repetitions.
fn form(answer: &str) -> Vec<Value> {
    if let Ok(object) = serde_json::from_str(answer) {
        return vec![shape("", &object)];
    }
    let events = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let event = |data| serde_json::from_str(data).map_or_else(|_| json!(data), |chunk| shape("", &chunk));
    let mut forms: Vec<Value> = events.map(event).collect();
    forms.dedup();
    forms
}

/// Replaces values by their types.
fn shape(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), shape(key, value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| shape(key, item)).collect(),
        value if CONSTANT.contains(&key) => value.clone(),
        Value::String(_) => json!("string"),
        Value::Number(_) => json!("number"),
        other => other.clone(),
    }
}
