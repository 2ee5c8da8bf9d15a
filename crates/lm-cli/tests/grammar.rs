//! `lm grammar`: verdicts, and errors that locate the defect of a schema.

use serde_json::{Value, json};

use crate::json_lines::{answers, failing};

fn joined(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Answers to these lines, in order.
fn grammar(lines: &[Value]) -> Vec<Value> {
    answers("grammar", &[], &joined(lines))
}

fn tools(count: Value) -> Value {
    json!([{"type": "function", "function": {"name": "roll", "parameters": {
        "type": "object", "properties": {"count": count}, "required": ["count"],
    }}}])
}

#[test]
fn valid_call_is_accepted_and_broken_ones_stop_at_the_fault() {
    let call = |arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"roll\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let texts =
        [call("{\"count\": 3}"), call("{\"count\": \"3\"}"), call("{\"number\": 3}"), call("{\"count\": 3")];
    let at = |index: usize, part: &str| texts[index].find(part).expect("is there");
    let expected = json!([
        {"accepted": true},
        {"accepted": false, "at": at(1, "\"3\"")},
        {"accepted": false, "at": at(2, "number")},
        {"accepted": false, "at": at(3, "\n</tool_call>") + 1},
    ]);
    let line = json!({"format": "hermes", "tools": tools(json!({"type": "integer"})), "tool_choice": "required", "texts": texts});
    assert_eq!(grammar(&[line])[0]["results"], expected);
}

#[test]
fn unenforced_keywords_are_named_and_validated() {
    let schema = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true});
    let answer = grammar(&[json!({"schema": schema, "texts": ["[1,2]", "[1,1]", "[1,\"\"]"]})]).remove(0);
    assert_eq!(
        answer["results"],
        json!([{"accepted": true}, {"accepted": false, "at": 5}, {"accepted": false, "at": 3}])
    );
    assert_eq!(answer["relaxed"], json!([{"tool": null, "path": "#", "keyword": "uniqueItems"}]));
}

#[test]
fn shown_grammar_is_the_one_that_is_compiled() {
    let lines = [
        json!({"lark": "start: marker_0", "markers": ["<a>"], "texts": []}),
        json!({"regex": "[0-9]+", "texts": []}),
        json!({"choice": ["a", "b"], "texts": []}),
        json!({"schema": {"type": "integer"}, "texts": ["1"]}),
        json!({"gbnf": "root ::= \"a\" root?", "texts": ["aa", "ab"]}),
    ];
    let shown = answers("grammar", &["--show"], &joined(&lines));
    assert_eq!(shown[0]["grammar"], json!({"lark": "start: marker_0", "markers": ["<a>"]}));
    assert_eq!(shown[1]["grammar"], json!({"regex": "[0-9]+"}));
    assert_eq!(shown[2]["grammar"], json!({"choice": ["a", "b"]}));
    let schema = &shown[3]["grammar"];
    assert!(schema["lark"].as_str().is_some_and(|text| text.contains("start:")), "{schema}");
    assert!(shown[4]["grammar"]["lark"].is_string(), "{}", shown[4]);
    assert_eq!(shown[4]["results"], json!([{"accepted": true}, {"accepted": false, "at": 1}]));
    let again = json!({"lark": schema["lark"], "markers": schema["markers"], "texts": ["1", "x"]});
    let verdicts = &grammar(&[again])[0]["results"];
    assert_eq!(*verdicts, json!([{"accepted": true}, {"accepted": false, "at": 0}]));
}

#[test]
fn errors_name_the_tool_the_path_and_the_keyword() {
    let lines = [
        json!({"format": "hermes", "tools": tools(json!({"type": "whole"})), "texts": []}),
        json!({"schema": {"items": {"$ref": "https://example.org/other"}}, "texts": []}),
        json!({"format": "hermes", "tool_choice": "required", "texts": []}),
        json!({"lark": "start: nothing", "texts": []}),
        json!({"texts": []}),
    ];
    let answers = failing("grammar", &[], joined(&lines).as_bytes(), "5 of 5 lines failed");
    let place = |answer: &Value| {
        json!([
            answer["error"]["kind"],
            answer["error"]["tool"],
            answer["error"]["path"],
            answer["error"]["keyword"]
        ])
    };
    let expected = [
        json!(["bad_schema", "roll", "#/properties/count", "type"]),
        json!(["unsupported_keyword", null, "#/items", "$ref"]),
        json!(["bad_request", null, null, null]),
        json!(["bad_grammar", null, null, null]),
        json!(["bad_line", null, null, null]),
    ];
    assert_eq!(answers.iter().map(place).collect::<Vec<_>>(), expected);
}
