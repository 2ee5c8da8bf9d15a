//! A tokenizer as the grammar library sees it.

use std::sync::Arc;

use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use lm_model::{TextSegment, TokenKind, Tokenizer};

use crate::TokenId;

/// The trie of all tokens, and the real tokenizer for text that a grammar forces.
///
/// Every added token is a special one to the library, flagged as such or not: no text reaches it, only its marker does.
/// Ids without text, the padding of the logits among them, are in no mask. The id after the last stands for the end of
/// the text: in a mask it says that the text may end, so that real end ids are ordinary tokens to a grammar.
pub(super) struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl Vocabulary {
    pub(super) fn env(tokenizer: &Arc<Tokenizer>) -> TokEnv {
        let width = tokenizer.logits_width() as TokenId;
        let words: Vec<Vec<u8>> = (0..width).map(|id| word(tokenizer, id)).chain([Vec::new()]).collect();
        let trie = TokTrie::from(&TokRxInfo::new(width + 1, width), &words);
        Arc::new(Self { tokenizer: tokenizer.clone(), trie })
    }

    /// Ids of text that goes on after other text; `None` where the tokenizer's ids spell something else, as after
    /// normalisation.
    fn continued(&self, text: &str) -> Option<Vec<TokenId>> {
        let plain = self.encode(text)?;
        if self.spells(&plain, text.as_bytes()) {
            return Some(plain);
        }
        // SentencePiece puts a space before a text: a line break takes it, and is cut off with it.
        let after_break = self.encode(&format!("\n{text}"))?;
        let first = (1..=after_break.len()).find(|&at| self.spells(&after_break[..at], b" \n"))?;
        let rest = after_break[first..].to_vec();
        self.spells(&rest, text.as_bytes()).then_some(rest)
    }

    fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        self.tokenizer.encode_segments(&[TextSegment::Content(text)]).ok()
    }

    fn spells(&self, ids: &[TokenId], bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let spelled = ids.iter().all(|&id| {
            let after = rest.strip_prefix(self.tokenizer.token_bytes(id));
            rest = after.unwrap_or(rest);
            after.is_some()
        });
        spelled && rest.is_empty()
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let text = std::str::from_utf8(bytes).ok();
        text.and_then(|text| self.continued(text)).unwrap_or_else(|| self.trie.greedy_tokenize(bytes))
    }
}

/// The bytes of `id` in the trie.
fn word(tokenizer: &Tokenizer, id: TokenId) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id);
    match tokenizer.token_kind(id) {
        TokenKind::Added | TokenKind::Special => [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat(),
        // No text holds the byte of the marker; a token that begins with it would pass for a special one.
        TokenKind::Text if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(),
        TokenKind::Text => bytes.to_vec(),
    }
}
