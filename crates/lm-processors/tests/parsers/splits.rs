//! Any split of a reply gives the same events: generated replies of every family, and all reference vectors.

use crate::parsers::common::{Broken, parse, sum, with_a_tool};
use crate::parsers::random::Random;
use crate::shared;
use lm_processors::{
    ALL, CallBody, CallSyntax, Dialect, ModelDataProcessor, OnMalformed, ParserOptions, ReadCalls,
    ReasoningText,
};
use serde_json::Value;

/// Number of generated replies per family.
const REPLIES: usize = 150;
/// Number of random splits per vector.
const SPLITS: usize = 40;

/// Pieces of generated replies: JSON and broken JSON, calls of other kinds, whitespace, text.
const PIECES: &[&str] = &[
    "<",
    "</",
    "[",
    "{",
    "}",
    "\n",
    "\n\n",
    " ",
    "    ",
    r#"{"name": "get_weather", "arguments": {"location": "Zürich 🌧", "days": [1, {"a": null}]}}"#,
    r#"{"arguments": {"q": "a \"quoted\" </tool_call> {"}, "name": "search"}"#,
    r#"{"name": "f", "arguments": "{\"x\": 1}"}"#,
    r#"[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"x": 1.50}}]"#,
    r#"[{"get_weather": {"location": "Paris"}}]"#,
    r#"{"name": "get_weather", "arguments": {"x": "unclosed"#,
    r#"{"name": 1}"#,
    "get_weather",
    "functions.get_weather:0",
    r#"{"location": "Paris"}"#,
    "[get_weather(location='Paris', n=1), f()]",
    "get_weather{location:Paris,n:1}",
    "location",
    "Straße",
    "🙂 ok",
    "; ",
];

fn markers(dialect: &Dialect) -> Vec<&'static str> {
    let channels =
        dialect.channels.iter().flat_map(|channel| [channel.tags.open, channel.tags.close, channel.label]);
    let answer = [dialect.answer.tags.open, dialect.answer.tags.close];
    let stripped = dialect.stripped.iter().flat_map(|tags| [tags.open, tags.close]);
    let dropped = dialect.answer.dropped.iter().copied().chain(stripped);
    let calls = dialect.calls.iter().flat_map(of_calls);
    let all = channels.chain(answer).chain(dropped).chain(calls);
    all.filter(|marker| !marker.is_empty()).collect()
}

fn of_calls(syntax: &'static CallSyntax) -> Vec<&'static str> {
    let CallSyntax { section, separator, call, body, .. } = syntax;
    let mut markers = vec![section.open, section.close, separator, call.open, call.close];
    match body {
        CallBody::Named(named) => {
            markers.extend([named.before_name, named.after_name, named.after_arguments])
        }
        CallBody::Parameters(call) => markers.extend([
            call.name.open,
            call.name.close,
            call.key.open,
            call.key.close,
            call.value.open,
            call.value.close,
            call.end,
        ]),
        CallBody::Braces(call) => markers.extend([call.before_name, call.quote]),
        CallBody::Json(_) | CallBody::Python(_) => {}
    }
    markers
}

/// Markers in and out of order, whole and halved, with anything between them.
fn reply(random: &mut Random, markers: &[&'static str]) -> String {
    let mut reply = String::new();
    for _ in 0..random.below(14) {
        let pool = if markers.is_empty() || random.below(2) == 0 { PIECES } else { markers };
        let piece = pool[random.below(pool.len())];
        let halved = random.below(12) == 0;
        reply.push_str(if halved { &piece[..piece.floor_char_boundary(piece.len() / 2)] } else { piece });
    }
    reply
}

fn options(random: &mut Random, processor: &dyn ModelDataProcessor) -> ParserOptions {
    let start = processor.channels().first().map(|channel| channel.start.to_string()).unwrap_or_default();
    let on_malformed = [OnMalformed::Error, OnMalformed::Text][random.below(2)];
    ParserOptions {
        calls: [ReadCalls::WhenDeclared, ReadCalls::Always, ReadCalls::Never][random.below(3)],
        prompt_tail: [None, Some("".into()), Some(start.into())][random.below(3)].clone(),
        reasoning: [ReasoningText::Split, ReasoningText::Inline][random.below(2)],
        ..with_a_tool(on_malformed, "")
    }
}

/// Cuts a text into pieces of random lengths.
fn cut<'a>(random: &mut Random, text: &'a str) -> Vec<&'a str> {
    let longest = 1 + random.below(40);
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(1 + random.below(longest)));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[track_caller]
fn check(random: &mut Random, processor: &dyn ModelDataProcessor, options: &ParserOptions, reply: &str) {
    let whole = parse(processor, options, [reply]);
    let pieces = cut(random, reply);
    let in_pieces = parse(processor, options, pieces.iter().copied());
    assert_eq!(in_pieces, whole, "{}: {pieces:?}\n{options:?}", processor.name());
}

#[test]
fn generated_replies_of_every_family_split_anywhere() {
    let mut random = Random::seeded("made-up replies");
    for family in ALL {
        let markers = family.processor.dialect().map(markers).unwrap_or_default();
        for _ in 0..REPLIES {
            let reply = reply(&mut random, &markers);
            let options = options(&mut random, family.processor);
            check(&mut random, family.processor, &options, &reply);
            let whole = parse(family.processor, &options, [reply.as_str()]);
            let by_character = parse(family.processor, &options, reply.split_inclusive(|_| true));
            assert_eq!(by_character, whole, "{}: {reply:?}\n{options:?}", family.processor.name());
        }
    }
    println!("{} families, {} replies", ALL.len(), ALL.len() * REPLIES);
}

#[test]
fn repeated_markers_of_a_key_read_alike_in_any_pieces() {
    let processor = lm_processors::by_name("qwen3_coder_xml").expect("a family");
    let options = with_a_tool(OnMalformed::Error, "");
    for count in 1..5 {
        let marker = "<parameter=".repeat(count);
        let reply = format!(
            "<tool_call>\n<function=get_weather>\n{marker}a>\n1\n</parameter>\n</function>\n</tool_call>"
        );
        let whole = parse(processor, &options, [reply.as_str()]);
        let by_character = parse(processor, &options, reply.split_inclusive(|_| true));
        assert_eq!(by_character, whole, "{reply}");
        let called = sum(whole, Broken::Error);
        assert_eq!(called.calls.len(), 1, "{reply}: {:?}", called.malformed);
    }
}

#[test]
fn reference_vectors_in_random_pieces() {
    let Some(folder) = shared::path("goldens/parser") else { return };
    let mut random = Random::seeded("vectors");
    let mut vectors = 0;
    for path in ["tools", "reasoning"].iter().flat_map(|kind| std::fs::read_dir(folder.join(kind)).unwrap()) {
        let data: Value = serde_json::from_slice(&std::fs::read(path.unwrap().path()).unwrap()).unwrap();
        let Some(processor) = lm_processors::by_name(data["format"].as_str().unwrap()) else { continue };
        for vector in data["vectors"].as_array().unwrap() {
            vectors += 1;
            for _ in 0..SPLITS {
                let options = options(&mut random, processor);
                check(&mut random, processor, &options, vector["output"].as_str().unwrap());
            }
        }
    }
    println!("{vectors} vectors, {} splits", vectors * SPLITS);
}
