//! Comparison of a tokenizer with what is read back from a file.

use lm_tokenizer::{TokenId, TokenKind, Tokenizer};

use crate::error::Result;

/// The differing property, and both values.
pub(crate) type Difference = (String, String, String);

/// Probe with every kind of text that pre-tokenizers split differently: words, contractions, numbers,
/// whitespace, other scripts, punctuation.
const PROBE: &str = "Hello, world! I'll say it's WE'VE (don't) x2 3 45 678 9012345 1,234.5e-6\n\n \n\t\t  a   b    c \r\n\
    snake_case camelCase HTTPServer2 {\"key\": [1, 22, null]} // --- ==> <a href='#'> \u{2581}\
    \u{e9}t\u{e9} na\u{ef}ve Stra\u{df}e \u{41f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{4f60}\u{597d}\u{4e16}\u{754c}123 \
    \u{3053}\u{3093}\u{306b}\u{3061}\u{306f} \u{c548}\u{b155} \u{645}\u{631}\u{62d}\u{628}\u{627} \
    \u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947} \u{1f600}\u{1f469}\u{200d}\u{1f680} \u{2026}\u{a0}\u{3000}end ";

/// Returns the first difference of two tokenizers, if any: in the bytes and kinds of their tokens, or in the
/// ids of a probe text and of added tokens.
pub(crate) fn tokenizer_difference(model: &Tokenizer, read: &Tokenizer) -> Result<Option<Difference>> {
    let ids = || 0..model.vocab_size() as TokenId;
    for id in ids() {
        let token = |tokenizer: &Tokenizer| {
            let bytes = String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned();
            format!("{bytes:?}, {:?}", tokenizer.token_kind(id))
        };
        if model.token_bytes(id) != read.token_bytes(id) || model.token_kind(id) != read.token_kind(id) {
            return Ok(Some((format!("token {id}"), token(model), token(read))));
        }
    }
    let added = ids().filter(|&id| model.token_kind(id) != TokenKind::Text);
    let added = added.map(|id| String::from_utf8_lossy(model.token_bytes(id)).into_owned());
    let texts =
        std::iter::once(PROBE.to_owned()).chain(added.take(64).map(|token| format!("a{token} b{token}\n")));
    for text in texts {
        if let Some((at, model, read)) = ids_difference(&model.encode(&text)?, &read.encode(&text)?) {
            return Ok(Some((format!("the ids of {text:?} from the {at}th on"), model, read)));
        }
    }
    Ok(None)
}

/// Returns the index of the first differing id, and some ids of both from there on.
pub(crate) fn ids_difference(model: &[TokenId], read: &[TokenId]) -> Option<(usize, String, String)> {
    let at = (0..model.len().max(read.len())).find(|&at| model.get(at) != read.get(at))?;
    let from = |ids: &[TokenId]| format!("{:?}", &ids[at.min(ids.len())..(at + 4).min(ids.len())]);
    Some((at, from(model), from(read)))
}
