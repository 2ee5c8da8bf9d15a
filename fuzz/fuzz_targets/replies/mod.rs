//! Model replies: any split of the text gives the same events.

use libfuzzer_sys::Corpus;
use lm_processors::{
    ALL, CallBody, Family, ParserOptions, ProcessorEvent, ReadCalls, ReasoningText, ToolSpec,
};

/// Parses a reply in one of the families whose calls have this syntax.
#[allow(dead_code, reason = "one target chooses its families by name")]
pub fn read(bytes: &[u8], of_core: impl Fn(&CallBody) -> bool) -> Corpus {
    read_in(bytes, |family| {
        let calls = family.processor.dialect().map_or(&[][..], |dialect| dialect.calls);
        calls.iter().any(|syntax| of_core(&syntax.body))
    })
}

/// Parses a reply in one of these families. The first bytes select family, options and split positions.
pub fn read_in(bytes: &[u8], wanted: impl Fn(&Family) -> bool) -> Corpus {
    let Some((&[family, options, cuts], reply)) = bytes.split_first_chunk() else { return Corpus::Reject };
    let Ok(reply) = std::str::from_utf8(reply) else { return Corpus::Reject };
    let families: Vec<_> = ALL.iter().filter(|family| wanted(family)).collect();
    let processor = families[usize::from(family) % families.len()].processor;
    let start = processor.channels().first().map(|channel| channel.start.to_string()).unwrap_or_default();
    let tool = ToolSpec::new(
        "f",
        "",
        serde_json::json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
    );
    let options = ParserOptions {
        tools: if options & 1 == 0 { [tool].into() } else { [].into() },
        calls: if options & 2 == 0 { ReadCalls::Always } else { ReadCalls::WhenDeclared },
        prompt_tail: [None, Some("".into()), Some(start.into()), None][usize::from(options >> 2 & 3)].clone(),
        reasoning: if options & 16 == 0 { ReasoningText::Split } else { ReasoningText::Inline },
        ..ParserOptions::default()
    };
    let parse = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut parser = processor.parser(&options);
        let mut events: Vec<ProcessorEvent> = pieces.flat_map(|piece| parser.push(piece)).collect();
        events.extend(parser.finish());
        joined(events)
    };
    let whole = parse(&mut std::iter::once(reply));
    let middle = reply.floor_char_boundary(reply.len() * usize::from(cuts) / 256);
    assert_eq!(parse(&mut [&reply[..middle], &reply[middle..]].into_iter()), whole, "cut at {middle}");
    assert_eq!(parse(&mut reply.split_inclusive(|_| true)), whole, "by character");
    Corpus::Keep
}

/// Merges adjacent events, so that the split positions do not matter.
fn joined(events: Vec<ProcessorEvent>) -> Vec<ProcessorEvent> {
    let mut joined: Vec<ProcessorEvent> = Vec::new();
    for event in events {
        let rest = match joined.last_mut() {
            Some(last) => last.absorb(event),
            None => Some(event),
        };
        joined.extend(rest);
    }
    joined
}
