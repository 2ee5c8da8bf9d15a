//! Any bytes as a `tokenizer.json`: what is accepted encodes, decodes and streams, and content never spells an added token.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_model::{SpecialTokens, TextSegment, TokenId, TokenKind, Tokenizer};

const TEXTS: [&str; 4] = ["", " Hello, wörld\n\t 12345", "a<x>▁<0x41> 😀<|end|>", "\u{0}\u{301}'S  \u{FFFD}Ġ"];
/// Ids that are decoded one by one.
const MAX_IDS: usize = 4096;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(tokenizer) = Tokenizer::from_json(bytes) else {
        // What is nearly accepted is worth keeping.
        return Corpus::Keep;
    };
    for text in TEXTS {
        let Ok(ids) = tokenizer.encode_segments(&[TextSegment::Content(text)]) else { continue };
        let spells_one = |id: &TokenId| {
            let blank = tokenizer.token_bytes(*id).iter().all(u8::is_ascii_whitespace);
            let long = tokenizer.token_bytes(*id).len() > 1 && String::from_utf8_lossy(tokenizer.token_bytes(*id)).chars().count() > 1;
            tokenizer.token_kind(*id) != TokenKind::Text && !blank && long && text.contains(&*String::from_utf8_lossy(tokenizer.token_bytes(*id)))
        };
        assert!(!ids.iter().any(spells_one), "content gave an added token: {ids:?}");
        if let Ok(ids) = tokenizer.encode(text) {
            check_stream(&tokenizer, &ids);
        }
    }
    let ids: Vec<TokenId> = (0..tokenizer.vocab_size().min(MAX_IDS) as TokenId).rev().collect();
    check_stream(&tokenizer, &ids);
    Corpus::Keep
});

/// What is streamed is what is decoded.
fn check_stream(tokenizer: &Tokenizer, ids: &[TokenId]) {
    let mut stream = tokenizer.stream_decoder();
    let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
    text += &stream.finish();
    assert_eq!(text, tokenizer.decode(ids, SpecialTokens::Keep));
}
