//! Scripted engines, and vectors: files of expected responses.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::path::Path;

use lm_api::{ConversationConfig, Engine, Value};
use lm_conversation::PromptTemplate;
use lm_session::testing::scripted_engine;

/// ChatML with tools in the Hermes format.
pub const TEMPLATE: &str = include_str!("../../../../testdata/templates/hermes.jinja");

pub const CALLS: &str = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Zürich\"}}\n</tool_call>\n\
                     <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

/// Engine of these replies, and the config of a conversation in a dialect.
pub fn scripted(replies: &[&'static str], dialect: &str) -> (Engine, ConversationConfig) {
    let engine = scripted_engine(replies.iter().copied());
    let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
    let processor = lm_processors::by_name(dialect).map(Into::into);
    assert!(processor.is_some(), "{dialect}");
    let config = ConversationConfig { template, processor, ..ConversationConfig::from_engine(&engine) };
    (engine, config)
}

/// Compares with a file of `tests/vectors`; writes it if `LM_WRITE_VECTORS` is set.
pub fn check(name: &str, got: &Value) {
    let got = &with_counted_ids(got);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let got = rounded(got.clone());
    if std::env::var_os("LM_WRITE_VECTORS").is_some() {
        let text = match &got {
            Value::Array(chunks) => {
                let lines: Vec<String> = chunks.iter().map(Value::to_string).collect();
                format!("[\n{}\n]\n", lines.join(",\n"))
            }
            object => serde_json::to_string_pretty(object).expect("JSON") + "\n",
        };
        std::fs::write(&path, text).expect("the vector can be written");
    }
    let text = std::fs::read_to_string(&path).expect("the vector can be read");
    let expected: Value = serde_json::from_str(&text).expect("the vector is JSON");
    assert_eq!(got, rounded(expected), "{name}");
}

/// Replaces the random ids of calls by `call_0`, `call_1` and so on, in their order.
pub fn with_counted_ids(value: &Value) -> Value {
    let mut text = value.to_string();
    for count in 0.. {
        let is_random = |part: &&str| part.len() == 24 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let next = text.split("call_").skip(1).filter_map(|rest| rest.get(..24)).find(is_random);
        let Some(digits) = next.map(str::to_owned) else { break };
        text = text.replace(&format!("call_{digits}"), &format!("call_{count}"));
    }
    serde_json::from_str(&text).expect("it is JSON")
}

/// Rounds fractions: sums of probabilities differ in the last digits between processors.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = (number.as_f64().unwrap_or(f64::NAN) * 1e6).round() / 1e6;
            (rounded + 0.0).into() // No negative zero.
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| member(key, value)).collect(),
        value => value,
    }
}

/// Rounds a member; a duration, which differs from run to run, is null.
fn member(key: String, value: Value) -> (String, Value) {
    let duration = key.ends_with("_ms") || key.ends_with("_per_second");
    (key, if duration { Value::Null } else { rounded(value) })
}
