//! Any split of a reply gives the same events.

use crate::common::{family, parse, with_a_tool};
use lm_processors::OnMalformed;
use proptest::prelude::*;

/// Pieces that replies are made of: whole markers, halves of them, JSON and broken JSON, whitespace, text.
const PIECES: &[&str] = &[
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_",
    "call>",
    "<",
    "</",
    "\n",
    "\n\n",
    " ",
    r#"{"name": "get_weather", "arguments": {"location": "Zürich 🌧", "days": [1, {"a": null}]}}"#,
    r#"{"arguments": {"q": "a \"quoted\" </tool_call> {"}, "name": "search"}"#,
    r#"{"name": "f", "arguments": "{\"x\": 1}"}"#,
    r#"[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"x": 1.50}}]"#,
    r#"{"name": "f", "arguments": {"x": "unclosed"#,
    r#"{"name": 1}"#,
    "{}",
    "[]",
    "}",
    "Straße",
    "🙂 ok",
    "hello",
];

fn reply() -> impl Strategy<Value = String> {
    let call =
        prop::sample::select(&PIECES[11..18]).prop_map(|json| format!("\n<tool_call>\n{json}\n</tool_call>"));
    let piece = prop::sample::select(PIECES).prop_map(str::to_owned);
    prop::collection::vec(prop_oneof![3 => piece, 1 => call], 0..12).prop_map(|pieces| pieces.concat())
}

/// Cuts a text at the given fractions of its length, moved to character borders.
fn cut<'a>(text: &'a str, cuts: &[f64]) -> Vec<&'a str> {
    let at = |fraction: &f64| text.floor_char_boundary((fraction * text.len() as f64) as usize);
    let mut cuts: Vec<usize> = cuts.iter().map(at).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_events(
        reply in reply(),
        cuts in prop::collection::vec(0.0..1.0, 0..6),
        name in prop::sample::select(&["generic", "hermes", "qwen"][..]),
        in_reasoning: bool,
        as_text: bool,
    ) {
        let on_malformed = if as_text { OnMalformed::Text } else { OnMalformed::Error };
        let options = with_a_tool(on_malformed, if in_reasoning { "<think>\n" } else { "" });
        let whole = parse(family(name), &options, [reply.as_str()]);
        prop_assert_eq!(&parse(family(name), &options, cut(&reply, &cuts)), &whole);
        prop_assert_eq!(&parse(family(name), &options, reply.split_inclusive(|_| true)), &whole);
    }
}
