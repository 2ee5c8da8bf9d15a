//! Windows of a text.

use std::ops::Range;

use lm_tokenizer::TokenId;

/// Number of logits rows in memory at a time, where they are compared.
const PIECE: usize = 64;
/// The same, where only the pass counts: each piece reads the weights again.
const LONG_PIECE: usize = 256;

/// Tokens of a text, cut into windows that are run independently.
pub struct Windows {
    text: Vec<TokenId>,
    prefix: Vec<TokenId>,
    /// Number of text tokens in a window.
    stride: usize,
}

/// Tokens that are run from an empty cache.
pub struct Window {
    /// The prefix, followed by a piece of the text.
    pub ids: Vec<TokenId>,
    /// Index of the first token that has a predecessor and is not in the prefix.
    pub first_scored: usize,
}

impl Windows {
    /// Cuts `text` into windows of `context` tokens, including `prefix`, that do not overlap.
    ///
    /// # Errors
    /// A message when the prefix leaves no room.
    pub fn new(text: Vec<TokenId>, prefix: Vec<TokenId>, context: usize) -> Result<Self, String> {
        let shortest = prefix.len().max(1) + 1;
        if context < shortest {
            return Err(format!("a window needs at least {shortest} tokens, --context is {context}"));
        }
        Ok(Self { stride: context - prefix.len(), text, prefix })
    }

    pub fn iter(&self) -> impl Iterator<Item = Window> {
        self.text
            .chunks(self.stride)
            .map(|text| Window { ids: [&self.prefix, text].concat(), first_scored: self.prefix.len().max(1) })
    }

    /// Number of tokens of the text.
    pub fn tokens(&self) -> usize {
        self.text.len()
    }

    /// Number of scored tokens: without a prefix, all but the first of each window.
    pub fn scored(&self) -> usize {
        let unscored = if self.prefix.is_empty() { self.count() } else { 0 };
        self.text.len() - unscored
    }

    /// Number of windows.
    pub fn count(&self) -> usize {
        self.text.len().div_ceil(self.stride)
    }
}

impl Window {
    /// Ranges of the tokens whose logits predict a token of the window, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        pieces(self.ids.len().saturating_sub(1), PIECE)
    }

    /// Ranges of all tokens of the window, in long pieces.
    pub fn all_pieces(&self) -> impl Iterator<Item = Range<usize>> {
        pieces(self.ids.len(), LONG_PIECE)
    }
}

fn pieces(end: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(len).map(move |start| start..end.min(start + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_text_and_start_with_the_prefix() {
        let windows = Windows::new((10..17).collect(), vec![1, 2], 5).expect("there is room");
        let ids: Vec<_> = windows.iter().map(|window| window.ids).collect();
        assert_eq!(ids, [vec![1, 2, 10, 11, 12], vec![1, 2, 13, 14, 15], vec![1, 2, 16]]);
        assert!(windows.iter().all(|window| window.first_scored == 2));
        assert_eq!((windows.count(), windows.scored(), windows.tokens()), (3, 7, 7));
    }

    #[test]
    fn first_token_is_not_scored_without_prefix() {
        let windows = Windows::new((0..7).collect(), Vec::new(), 3).expect("there is room");
        let scored = |window: Window| window.ids.len() - window.first_scored;
        assert_eq!(windows.iter().map(scored).collect::<Vec<_>>(), [2, 2, 0]);
        assert_eq!((windows.count(), windows.scored()), (3, 4));
    }

    #[test]
    fn pieces_cover_all_tokens_but_the_last() {
        let window = |len: u32| Window { ids: (0..len).collect(), first_scored: 1 };
        let pieces = |len| window(len).pieces().collect::<Vec<_>>();
        assert!(pieces(1).is_empty());
        assert_eq!(pieces(65), vec![0..64; 1]);
        assert_eq!(pieces(66), [0..64, 64..65]);
        assert_eq!(window(257).all_pieces().collect::<Vec<_>>(), [0..256, 256..257]);
    }

    #[test]
    fn unscorable_input_is_rejected() {
        assert!(Windows::new(vec![1, 2], vec![], 1).is_err());
        for text in [vec![], vec![1]] {
            assert_eq!(Windows::new(text, vec![], 8).expect("there is room").scored(), 0);
        }
        assert!(Windows::new(vec![1, 2, 3], vec![7, 8], 2).is_err());
        assert_eq!(Windows::new(vec![1], vec![7], 2).expect("one is scored").scored(), 1);
    }
}
