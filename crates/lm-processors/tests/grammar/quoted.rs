//! Calls whose strings spell markers of families: if markers are tokens, this is ordinary text.

use lm_processors::{
    ALL, GrammarRequest, ParserOptions, ProcessorEvent, ReplyForm, ToolCall, ToolChoice, ToolSpec,
};
use serde_json::json;

use crate::grammar::common::Compiler;
use crate::grammar::writer::reply;
use crate::tokens::{all_tokens, push, tokenized, tokens};

/// Placeholder for the quoted markers while a call is written.
const QUOTE: char = '\u{e000}';

/// The parser returns a call's values, whatever markers they quote.
#[test]
fn calls_can_quote_marker_tokens() {
    let properties =
        json!({"said": {"type": "string"}, "more": {"type": "array", "items": {"type": "string"}}});
    let tool =
        ToolSpec::new("say", "", json!({"type": "object", "properties": properties, "required": ["said"]}));
    let tools = [tool];
    let mut checked = 0;
    for family in ALL {
        let processor = family.processor;
        let known = tokens(processor);
        let Some(dialect) = processor.dialect().filter(|_| !known.is_empty()) else { continue };
        let quoted = all_tokens().join(" ");
        let said = format!("x{QUOTE}y");
        let call = json!({"name": "say", "arguments": {"said": said, "more": [said]}});
        let call = ToolCall::from_json(call).expect("a call");
        let Some(text) = reply(dialect, &[call], &tools) else { continue };
        let request = GrammarRequest { tools: &tools, tokens: known.clone(), ..GrammarRequest::default() };
        let options = ParserOptions {
            tools: tools.clone().into(),
            prompt_tail: Some("".into()),
            form: Some(ReplyForm::of(&request)),
            tokens: known.clone(),
            ..ParserOptions::default()
        };
        for cut in [false, true] {
            let mut parser = processor.parser(&options);
            let mut events = Vec::new();
            for (at, written) in text.split(QUOTE).enumerate() {
                if at > 0 && cut {
                    events.extend(quoted.split_inclusive(|_| true).flat_map(|piece| parser.push(piece)));
                } else if at > 0 {
                    events.extend(parser.push(&quoted));
                }
                let pieces = tokenized(written, &known);
                events.extend(pieces.into_iter().flat_map(|piece| push(&mut *parser, piece)));
            }
            events.extend(parser.finish());
            let name = processor.name();
            let calls: Vec<_> = events
                .iter()
                .filter_map(
                    |event| if let ProcessorEvent::ToolCall { call, .. } = event { Some(call) } else { None },
                )
                .collect();
            let said = format!("x{quoted}y");
            let expected = json!({"said": said, "more": [said]});
            assert_eq!(calls.len(), 1, "{name}: {events:?}");
            assert_eq!(json!(calls[0].arguments), expected, "{name}");
            let fragments: String = events
                .iter()
                .filter_map(|event| match event {
                    ProcessorEvent::ToolCallArguments { fragment, .. } => Some(fragment.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(fragments.parse::<serde_json::Value>().ok(), Some(expected), "{name}: {fragments}");
            checked += 1;
        }
    }
    println!("{checked} calls");
    assert!(checked > 80);
}

/// With known tokens, the grammar of every family names only markers of the family, and compiles.
#[test]
fn grammar_markers_equal_family_markers() {
    let tool = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let tools = [ToolSpec::new("f", "", tool)];
    let compiler = Compiler::new();
    for family in ALL {
        let processor = family.processor;
        let known = tokens(processor);
        for choice in [ToolChoice::Auto, ToolChoice::None] {
            let request =
                GrammarRequest { tools: &tools, choice, tokens: known.clone(), ..GrammarRequest::default() };
            let Some(grammar) = processor.grammar(&request).expect("a grammar") else { continue };
            let name = processor.name();
            // In markup whose elements are named by keys, a closing marker contains a key.
            let of_family = |marker: &&String| !marker.contains("</a") && !marker.contains("</b");
            for marker in grammar.grammar.markers.iter().filter(of_family) {
                let again = lm_processors::MarkerTokens::in_markers([marker.as_str()], |text| {
                    crate::tokens::token(text)
                });
                let unknown = again.iter().find(|token| known.iter().all(|known| known != *token));
                assert_eq!(unknown, None, "{name}: {marker}");
            }
            compiler
                .compile_grammar(&grammar.grammar)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{}", grammar.grammar.lark));
        }
    }
}
