use lm_kernels::{PAGE_LEN, PageId};
use lm_tokenizer::{TokenId, Tokenizer};

use crate::batch::{Input, SequenceInput};

/// One scripted reply of a [`FakeLm`](super::FakeLm).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Text with added tokens recognised; the tokenizer's first end-of-sequence id follows.
    Text(String),
    /// Exactly these ids; end-of-sequence ids occur only where they are listed.
    Ids(Vec<TokenId>),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<TokenId>> for Reply {
    fn from(ids: Vec<TokenId>) -> Self {
        Self::Ids(ids)
    }
}

/// Replies that are waiting and those that have started.
#[derive(Debug)]
pub(super) struct Script {
    waiting: std::vec::IntoIter<Vec<TokenId>>,
    /// End-of-sequence id, returned when a reply is finished or none is left.
    end_id: TokenId,
    started: Vec<StartedReply>,
}

/// Started reply: `ids[next - 1]` was returned and is expected at `slot`.
#[derive(Debug)]
struct StartedReply {
    ids: Vec<TokenId>,
    next: usize,
    slot: usize,
    block_table: Vec<PageId>,
}

impl Script {
    /// # Panics
    /// When the tokenizer has no end-of-sequence ids, or cannot encode a reply.
    pub(super) fn new(tokenizer: &Tokenizer, replies: Vec<Reply>) -> Self {
        let end_id = *tokenizer.end_ids().first().expect("a scripted tokenizer has an end id");
        let ids = |reply| match reply {
            Reply::Ids(ids) => ids,
            Reply::Text(text) => {
                let mut ids = tokenizer.encode(&text).expect("a scripted reply can be encoded");
                ids.push(end_id);
                ids
            }
        };
        let waiting = replies.into_iter().map(ids).collect::<Vec<_>>().into_iter();
        Self { waiting, end_id, started: Vec::new() }
    }

    /// Returns the id that follows the last row of `input`.
    pub(super) fn next_id(&mut self, input: &SequenceInput) -> TokenId {
        let started = self.started.iter().position(|reply| reply.is_continued_by(input));
        let mut reply = match started {
            Some(index) => self.started.swap_remove(index).past_forced(input.rows() - 1),
            None => StartedReply::new(self.waiting.next().unwrap_or_default(), input),
        };
        let id = reply.ids.get(reply.next).copied().unwrap_or(self.end_id);
        reply.next += 1;
        reply.slot = input.cached_len + input.rows();
        reply.block_table = input.block_tables[0][..reply.slot.div_ceil(PAGE_LEN)].to_vec();
        self.started.push(reply);
        id
    }
}

impl StartedReply {
    /// Starts a reply after `input`, which may end with the reply's first ids: they were forced.
    fn new(ids: Vec<TokenId>, input: &SequenceInput) -> Self {
        let forced = match &input.input {
            Input::Ids(rows) => (0..=ids.len()).rev().find(|&len| rows.ends_with(&ids[..len])),
            Input::Embeddings(_) => None,
        };
        Self { ids, next: forced.unwrap_or(0), slot: 0, block_table: Vec::new() }
    }

    /// Returns true if the rows are the last returned id and the script's ids after it, which may have been forced.
    fn is_continued_by(&self, input: &SequenceInput) -> bool {
        let given = self.next.checked_sub(1).and_then(|last| self.ids.get(last..));
        let row_ids = match &input.input {
            Input::Ids(ids) if !ids.is_empty() => ids,
            Input::Ids(_) | Input::Embeddings(_) => return false,
        };
        given.is_some_and(|given| given.starts_with(row_ids))
            && input.cached_len == self.slot
            && input.block_tables[0].starts_with(&self.block_table)
    }

    /// Skips `ids` forced ids.
    fn past_forced(mut self, ids: usize) -> Self {
        self.next += ids;
        self
    }
}
