//! A tokenizer as the grammar library sees it.

use std::sync::Arc;

use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use lm_model::{TokenKind, Tokenizer};

use super::continuation;
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

/// The bytes of `id` in the trie.
fn word(tokenizer: &Tokenizer, id: TokenId) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id);
    match tokenizer.token_kind(id) {
        _ if bytes.is_empty() => Vec::new(),
        TokenKind::Added | TokenKind::Special => [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat(),
        // No text holds the byte of the marker; a token that begins with it would pass for a special one.
        TokenKind::Text if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(),
        TokenKind::Text => bytes.to_vec(),
    }
}

/// The longest added token that `text` begins with, and its length.
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
