//! Tokenization of a text that continues another.

use lm_tokenizer::{TextSegment, Tokenizer};

use lm_tokenizer::TokenId;

/// Encodes `text` to ids that spell exactly it at any position; `None` where the tokenizer's ids spell
/// something else, for example because of normalisation. Added tokens are not recognised.
pub(crate) fn encode(tokenizer: &Tokenizer, text: &str) -> Option<Vec<TokenId>> {
    let encode = |text: &str| tokenizer.encode_segments(&[TextSegment::Content(text)]).ok();
    let plain = encode(text)?;
    if spells(tokenizer, &plain, text.as_bytes()) {
        return Some(plain);
    }
    // SentencePiece prepends a space to a text: a line break absorbs it and is removed together with it.
    let after_break = encode(&format!("\n{text}"))?;
    let first = (1..=after_break.len()).find(|&at| spells(tokenizer, &after_break[..at], b" \n"))?;
    let rest = &after_break[first..];
    spells(tokenizer, rest, text.as_bytes()).then(|| rest.to_vec())
}

fn spells(tokenizer: &Tokenizer, ids: &[TokenId], bytes: &[u8]) -> bool {
    let after = |rest: &mut &[u8], id: &TokenId| {
        let after = rest.strip_prefix(tokenizer.token_bytes(*id));
        *rest = after.unwrap_or(rest);
        after.is_some()
    };
    let mut rest = bytes;
    ids.iter().all(|id| after(&mut rest, id)) && rest.is_empty()
}
