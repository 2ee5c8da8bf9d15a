//! All keywords of JSON Schema in each dialect: their grammars compile.

use lm_processors::{GrammarRequest, Thinking, ToolChoice, ToolSpec, Value};

use crate::grammar::common::Compiler;

/// Every `STEP`-th pair of dialect and schema is tested, each schema in several dialects; `LM_SCHEMAS=all`
/// runs all.
const STEP: usize = 4;

pub fn schemas() -> serde_json::Map<String, Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/schemas/keywords.json");
    let text = std::fs::read_to_string(path).expect("the schemas");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_keyword_compiles_in_every_dialect() {
    let (schemas, compiler) = (schemas(), Compiler::new());
    let step = if std::env::var("LM_SCHEMAS").is_ok_and(|value| value == "all") { 1 } else { STEP };
    let mut failures = Vec::new();
    for (offset, family) in lm_processors::ALL.iter().enumerate() {
        let processor = family.processor;
        if processor.dialect().is_none_or(|dialect| dialect.calls.is_empty()) {
            continue;
        }
        for (name, schema) in schemas.iter().skip(offset % step).step_by(step) {
            let tools = [ToolSpec::new("f", "", schema.clone())];
            let request = GrammarRequest {
                tools: &tools,
                choice: ToolChoice::Required,
                thinking: Thinking::Forbidden,
                ..GrammarRequest::default()
            };
            let grammar = processor.grammar(&request).map_err(|error| error.to_string());
            let compiled = grammar
                .and_then(|grammar| compiler.compile_grammar(&grammar.expect("a call is required").grammar));
            if let Err(error) = compiled.map_err(|error| error.to_string())
                // Integers beyond 64 bits are refused in every dialect.
                && !error.contains("more than 64 bits")
            {
                failures.push(format!("{} {name}: {error}", processor.name()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
