//! An untrusted template over a fixed conversation: it terminates within its limits, and whatever it does to
//! the messages, their text is never output as template text.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_template::{GenerationPrompt, Origin, PromptTemplate, RenderInput};
use serde_json::json;

/// A character that occurs only in the messages.
const CONTENT: char = '\u{E000}';

fuzz_target!(|source: &str| -> Corpus {
    let Ok(template) = PromptTemplate::new(source) else { return Corpus::Keep };
    let template = template.with_time("2025-03-14T15:09:26".parse().expect("a time"));
    let messages = [
        json!({"role": "system", "content": "a\u{E000} \u{E000}b"}),
        json!({"role": "user", "content": [{"type": "text", "text": "\u{E000}X\u{E000}\n 1"}], "k\u{E000}": 1.5}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "\u{E000}", "function": {"name": "f\u{E000}", "arguments": {"a\u{E000}": ["\u{E000}", 12, null]}}},
        ]}),
        json!({"role": "tool", "content": "{\"\u{E000}\": true}"}),
    ];
    let prompt = template.render(&RenderInput {
        messages: &messages,
        tools: &json!([{"type": "function", "function": {"name": "g\u{E000}", "parameters": {"type": "object"}}}]),
        generation_prompt: GenerationPrompt::Add,
        extra_context: &Default::default(),
    });
    // The template may write the character itself, literally or by its code.
    let may_write = source.contains(CONTENT) || source.contains('\\') || source.contains('%');
    if let (Ok(prompt), false) = (prompt, may_write) {
        for segment in prompt.segments.iter().filter(|segment| segment.origin == Origin::Template) {
            assert!(!segment.text.contains(CONTENT), "content as template text: {segment:?}");
        }
    }
    Corpus::Keep
});
