//! `lm parse` fed with the reference vectors as they are, and with lines that are wrong.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The answers to these lines, in order.
fn parse(args: &[&str], lines: &[Value]) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lm"))
        .arg("parse")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for line in lines {
                writeln!(stdin, "{line}").expect("the program reads");
            }
        });
        child.wait_with_output().expect("the program ends")
    });
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("answers are text");
    answers.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

#[test]
fn a_call_and_its_events() {
    let output = "Well.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": 12345678901234567890123}}\n</tool_call>";
    let line = json!({"format": "hermes", "output": output});
    let call = json!({"name": "now", "arguments": {"zone": 12345678901234567890123_u128 as f64}});
    let answer = parse(&["--events"], &[line]).remove(0);
    assert_eq!((&answer["content"], &answer["tool_calls"][0]["name"]), (&json!("Well."), &call["name"]));
    let kinds: Vec<&str> = answer["events"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(kinds, ["text", "tool_call_started", "tool_call_arguments", "tool_call"]);
    assert_eq!(answer["events"][2]["fragment"], "{\"zone\": 12345678901234567890123}");
}

#[test]
fn lines_that_cannot_be_answered() {
    let lines = [
        json!({"output": "?"}),
        json!({"format": "no such format", "output": "?"}),
        json!({"format": "hermes"}),
        json!({"format": "hermes", "output": "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1", "options": {"partial": true}}),
    ];
    let answers = parse(&[], &lines);
    let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("bad_line"), Some("bad_format"), Some("bad_line"), None]);
    assert_eq!(answers[3]["tool_calls"], json!([{"name": "f", "arguments_text": "{\"a\": 1"}]));
    assert_eq!(answers[3]["malformed"][0]["fault"], "unfinished");
}

/// The lines of all vectors: as they are in the files, with the format and the kind of their file.
fn vectors() -> Option<Vec<Value>> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder = std::env::var_os("LM_SHARED").map_or_else(beside, PathBuf::from).join("goldens/parser");
    if !folder.exists() {
        println!("skipped: {} not found", folder.display());
        return None;
    }
    let mut lines = Vec::new();
    for kind in ["tools", "reasoning"] {
        for entry in std::fs::read_dir(folder.join(kind)).expect("a folder") {
            let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
            let file: Value = serde_json::from_slice(&bytes).expect("JSON");
            for vector in file["vectors"].as_array().expect("a list") {
                let mut line = vector.clone();
                (line["format"], line["kind"]) = (file["format"].clone(), file["kind"].clone());
                lines.push(line);
            }
        }
    }
    Some(lines)
}

#[test]
fn reference_vectors_are_fed_as_they_are() {
    let Some(lines) = vectors() else { return };
    let answers = parse(&[], &lines);
    let differs = |(line, answer): &(&Value, &Value)| {
        if answer["error"]["kind"] == "bad_format" {
            return false;
        }
        let expected = &line["expected"];
        let text = |key: &str| expected.get(key).map(|text| text.as_str().unwrap_or_default());
        let calls = expected["tool_calls"].as_array().map(Vec::len);
        text("content").is_some_and(|text| answer["content"] != text)
            || text("reasoning").is_some_and(|text| answer["reasoning"] != text)
            || calls.is_some_and(|calls| answer["tool_calls"].as_array().map(Vec::len) != Some(calls))
    };
    let wrong: Vec<String> = lines
        .iter()
        .zip(&answers)
        .filter(differs)
        .map(|(line, answer)| format!("{} {}: {answer}", line["format"], line["name"]))
        .collect();
    println!("{} of {} differ:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    assert!(wrong.len() * 50 < lines.len(), "{} of {} differ", wrong.len(), lines.len());
}
