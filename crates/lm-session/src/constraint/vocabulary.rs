//! Adapter of a tokenizer to llguidance.

use std::sync::Arc;

use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use lm_tokenizer::{TokenKind, Tokenizer};

use super::continuation;
use lm_tokenizer::TokenId;

/// Trie of all tokens, and the real tokenizer for text that a grammar forces.
///
/// Every added token is a special token to the library, whether flagged as such or not: a grammar reaches it
/// only by naming it, not through text. Ids without text, including the padding of the logits, are in no
/// mask. The end of text is an extra id after the last one; so the model's own end tokens are ordinary tokens
/// that a grammar may name.
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
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let text = std::str::from_utf8(bytes).ok();
        text.and_then(|text| continuation::encode(&self.tokenizer, text))
            .unwrap_or_else(|| self.trie.greedy_tokenize(bytes))
    }
}

/// Trie bytes of `id`.
fn word(tokenizer: &Tokenizer, id: TokenId) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id);
    match tokenizer.token_kind(id) {
        _ if bytes.is_empty() => Vec::new(),
        TokenKind::Added | TokenKind::Special => [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat(),
        // The marker byte never occurs in UTF-8 text; a text token that begins with it would be read as a
        // special token.
        TokenKind::Text if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(),
        TokenKind::Text => bytes.to_vec(),
    }
}

/// Returns the longest added token at the start of `text`, and its length.
pub(super) fn special_token(trie: &TokTrie, text: &[u8]) -> Option<(TokenId, usize)> {
    let mut node = trie.child_at_byte(trie.root(), TokTrie::SPECIAL_TOKEN_MARKER)?;
    let mut longest = None;
    for (index, &byte) in text.iter().enumerate() {
        let Some(child) = trie.child_at_byte(node, byte) else { break };
        node = child;
        longest = node.token_id().map(|id| (id, index + 1)).or(longest);
    }
    longest
}
