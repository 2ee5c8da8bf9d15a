//! Any JSON as a schema, and as the parameters of a tool in every family's syntax.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_processors::{GrammarRequest, Layout, ResponseFormat, ToolSpec, Value, json_grammar, validator};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return Corpus::Reject };
    if let Ok(json) = json_grammar(&schema, Layout::Any) {
        assert!(json.grammar.lark.contains("start: "));
    }
    drop(validator(&schema, true));
    let tools = [ToolSpec::new("f", "", schema.clone())];
    let family = lm_processors::ALL[bytes.len() % lm_processors::ALL.len()];
    for layout in [Layout::Exact, Layout::Any] {
        let response_format = Some(ResponseFormat::JsonSchema(schema.clone()));
        let request = GrammarRequest { tools: &tools, response_format, layout, ..GrammarRequest::default() };
        if let Ok(Some(grammar)) = family.processor.grammar(&request) {
            assert!(grammar.grammar.lark.contains("start: "));
        }
    }
    Corpus::Keep
});
