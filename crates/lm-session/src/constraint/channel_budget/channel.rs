//! Position of a reply relative to a channel: outside, inside, or in its forced end.

use std::sync::Arc;

use lm_tokenizer::{TokenId, Tokenizer};

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) start: String,
    pub(super) end: String,
    /// Tokens that close the channel.
    pub(super) closing: Vec<TokenId>,
    pub(super) budget: usize,
}

/// State at the next token of a reply: `spent` tokens of the budget are used, and `matched` bytes of the next
/// marker are matched.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Outside {
        spent: usize,
        matched: usize,
    },
    Inside {
        spent: usize,
        matched: usize,
    },
    /// The first `written` closing tokens are committed.
    Closing {
        spent: usize,
        written: usize,
    },
}

impl Channel {
    /// State after token `id`; `closes` is true if it is the next closing token.
    pub(super) fn after(&self, state: State, id: TokenId, closes: bool) -> State {
        if closes {
            let (spent, written) = match state {
                State::Closing { spent, written } => (spent, written + 1),
                State::Outside { spent, .. } | State::Inside { spent, .. } => (spent, 1),
            };
            let done = written == self.closing.len();
            return if done {
                State::Outside { spent, matched: 0 }
            } else {
                State::Closing { spent, written }
            };
        }
        let state = match state {
            State::Inside { spent, matched } => State::Inside { spent: spent + 1, matched },
            // The reply's constraint allowed another token: the channel ends later.
            State::Closing { spent, .. } => State::Inside { spent, matched: 0 },
            outside @ State::Outside { .. } => outside,
        };
        self.tokenizer.token_bytes(id).iter().fold(state, |state, byte| self.after_byte(state, *byte))
    }

    fn after_byte(&self, state: State, byte: u8) -> State {
        match state {
            State::Outside { spent, matched } => match advance(self.start.as_bytes(), matched, byte) {
                None => State::Inside { spent, matched: 0 },
                Some(matched) => State::Outside { spent, matched },
            },
            State::Inside { spent, matched } => match advance(self.end.as_bytes(), matched, byte) {
                None => State::Outside { spent, matched: 0 },
                Some(matched) => State::Inside { spent, matched },
            },
            closing @ State::Closing { .. } => closing,
        }
    }
}

/// Returns the length of the longest prefix of `marker` that the text ends with after `byte`, given that
/// `matched` bytes matched before; `None` when the text ends with the whole marker. An empty marker is never
/// found.
fn advance(marker: &[u8], matched: usize, byte: u8) -> Option<usize> {
    let written = [&marker[..matched], &[byte]].concat();
    let longest = (0..=written.len()).rev().find(|&len| marker.starts_with(&written[written.len() - len..]));
    longest.filter(|&len| len < marker.len() || marker.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_marker_falls_back_to_its_longest_prefix() {
        let text = |marker: &str, text: &str| {
            text.bytes().try_fold(0, |matched, byte| advance(marker.as_bytes(), matched, byte))
        };
        assert_eq!(text("aab", "xaaa"), Some(2));
        assert_eq!(text("aab", "xaaab"), None);
        assert_eq!(text("<a>", "<<a"), Some(2));
        assert_eq!(text("", "abc"), Some(0));
    }
}
