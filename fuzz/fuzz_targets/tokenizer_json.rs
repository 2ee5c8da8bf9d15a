//! Arbitrary bytes as a `tokenizer.json`: an accepted tokenizer encodes and decodes without a panic, and
//! streaming equals decoding.

#![no_main]

mod panics;

use libfuzzer_sys::fuzz_target;
use lm_tokenizer::{SpecialTokens, TextSegment, TokenId, Tokenizer};

const TEXTS: [&str; 4] =
    ["", " Hello, wörld\n\t 12345", "a<x>▁<0x41> 😀<|end|>", "\u{0}\u{301}'S  \u{FFFD}Ġ"];
/// Maximum number of ids to decode, from the lowest on.
const MAX_IDS: usize = 4096;

fuzz_target!(init: panics::end_at_own_panics(), |bytes: &[u8]| {
    let Ok(tokenizer) = Tokenizer::from_json(bytes) else { return };
    for text in TEXTS {
        for segment in [TextSegment::Template(text), TextSegment::Content(text)] {
            if let Ok(ids) = tokenizer.encode_segments(&[segment]) {
                check_stream(&tokenizer, &ids);
            }
        }
    }
    let ids: Vec<TokenId> = (0..tokenizer.vocab_size().min(MAX_IDS) as TokenId).collect();
    check_stream(&tokenizer, &ids);
});

/// Checks that streaming equals decoding.
fn check_stream(tokenizer: &Tokenizer, ids: &[TokenId]) {
    let mut stream = tokenizer.stream_decoder();
    let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
    text += &stream.finish();
    assert_eq!(text, tokenizer.decode(ids, SpecialTokens::Keep));
}
