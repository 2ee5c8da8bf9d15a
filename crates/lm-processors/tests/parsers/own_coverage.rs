//! Coverage of the registry by own vectors, which need no data beside the checkout.

use std::collections::HashMap;

use lm_processors::{ALL, Family, by_name};
use serde_json::Value;

use crate::parsers::vectors::own_files;

/// Contents of a family's own vectors.
#[derive(Default)]
struct Coverage {
    vectors: usize,
    /// A vector has a call.
    call: bool,
    /// A vector has a call beside text, or beside another call; or reasoning.
    mixed: bool,
    /// A vector's answer is not the whole output.
    parsed: bool,
}

impl Coverage {
    fn add(&mut self, vector: &Value) {
        let expected = &vector["expected"];
        let text = |key: &str| expected[key].as_str().unwrap_or_default();
        let calls = expected["tool_calls"].as_array().map_or(0, Vec::len);
        self.vectors += 1;
        self.call |= calls > 0;
        self.mixed |= calls > 1 || calls == 1 && !text("content").is_empty() || !text("reasoning").is_empty();
        self.parsed |= vector["output"] != expected["content"];
    }

    /// Lists the kinds of vectors that the family should have and lacks.
    fn missing(&self, family: &Family) -> Vec<&'static str> {
        let dialect = family.processor.dialect();
        let calls = dialect.is_none_or(|dialect| !dialect.calls.is_empty());
        let marked = calls || dialect.is_some_and(|dialect| !dialect.channels.is_empty());
        let rules = [
            (self.vectors >= 2, "a second vector"),
            (self.call || !calls, "a call"),
            (self.mixed || !calls, "a call beside text or another call, or reasoning"),
            (self.parsed || !marked, "markers"),
        ];
        rules.into_iter().filter(|(holds, _)| !holds).map(|(_, kind)| kind).collect()
    }
}

#[test]
fn every_family_has_own_vectors() {
    let mut coverages: HashMap<&str, Coverage> = HashMap::new();
    for path in own_files() {
        let data: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
        let family = by_name(data["format"].as_str().expect("text")).expect("a known format");
        let coverage = coverages.entry(family.name()).or_default();
        data["vectors"].as_array().expect("a list").iter().for_each(|vector| coverage.add(vector));
    }
    let mut lacking = Vec::new();
    for family in ALL {
        let name = family.processor.name();
        let missing = coverages.entry(name).or_default().missing(family);
        if !missing.is_empty() {
            lacking.push(format!("{name}: {}", missing.join(", ")));
        }
    }
    assert!(lacking.is_empty(), "testdata/processors lacks\n{}", lacking.join("\n"));
}
