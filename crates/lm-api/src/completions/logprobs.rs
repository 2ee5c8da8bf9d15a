//! `logprobs` of a choice: one array for each property of its tokens.

use lm_conversation::ScoredToken;
use serde_json::{Map, Value, json};

use crate::chat_completions::finite;

/// Writer of a `logprobs` object.
#[derive(Debug, Default)]
pub(super) struct Logprobs {
    tokens: Vec<Value>,
    token_logprobs: Vec<Value>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<Value>,
}

impl Logprobs {
    /// Adds a token at an offset in the choice's text; the first token of a prompt has no log probability.
    pub(super) fn push(&mut self, bytes: &[u8], scored: Option<&ScoredToken>, offset: usize) {
        self.tokens.push(name(bytes).into());
        self.token_logprobs.push(scored.map(|scored| finite(scored.token.logprob)).into());
        self.top_logprobs.push(scored.map_or(Value::Null, top));
        self.text_offset.push(offset.into());
    }

    /// Adds tokens of the output, and moves `offset` behind them.
    pub(super) fn extend(&mut self, tokens: &[ScoredToken], offset: &mut usize) {
        for scored in tokens {
            self.push(&scored.token.bytes, Some(scored), *offset);
            *offset += chars(&scored.token.bytes);
        }
    }

    pub(super) fn json(self) -> Value {
        let Self { tokens, token_logprobs, top_logprobs, text_offset } = self;
        json!({
            "tokens": tokens,
            "token_logprobs": token_logprobs,
            "top_logprobs": top_logprobs,
            "text_offset": text_offset,
        })
    }
}

/// The most probable tokens, and the sampled one if it is not among them.
fn top(scored: &ScoredToken) -> Value {
    let tokens = scored.top.iter().chain([&scored.token]);
    Value::Object(
        tokens.map(|token| (name(&token.bytes), json!(finite(token.logprob)))).collect::<Map<_, _>>(),
    )
}

/// Text of a token, or its bytes in the form of this API if they are a part of a character.
fn name(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold("bytes:".to_owned(), |name, byte| format!("{name}\\x{byte:02x}")),
    }
}

/// Number of characters that begin in `bytes`.
pub(super) fn chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}
