use std::ops::Range;

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

/// Waiting and started replies.
#[derive(Debug)]
pub(super) struct Script {
    waiting: std::vec::IntoIter<Vec<TokenId>>,
    /// End-of-sequence id, returned when a reply is finished or none is left.
    end_id: TokenId,
    started: Vec<StartedReply>,
}

/// Started reply, with the slot of its first id.
#[derive(Debug)]
struct StartedReply {
    ids: Vec<TokenId>,
    first_slot: usize,
    /// Indices of the ids that the last call returned: the next step begins with one of them.
    last: Range<usize>,
    /// Pages of the slots before the returned ids.
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

    /// Returns the ids that follow the rows of `input` from row `first` on; rows after `first` may be draft
    /// tokens. `None` where the rows up to there depart from the script.
    pub(super) fn next_ids(&mut self, input: &SequenceInput, first: usize) -> Vec<Option<TokenId>> {
        let started = self.started.iter().position(|reply| reply.is_continued_by(input, first));
        let mut reply = match started {
            Some(index) => self.started.swap_remove(index),
            None => StartedReply::new(self.waiting.next().unwrap_or_default(), input, first),
        };
        let next: Vec<_> =
            (first..input.rows()).map(|row| reply.id_after(input, first, row, self.end_id)).collect();
        let end = input.cached_len + input.rows() + 1 - reply.first_slot;
        reply.last = end - next.len()..end;
        reply.block_table =
            input.block_tables[0][..(input.cached_len + first + 1).div_ceil(PAGE_LEN)].to_vec();
        self.started.push(reply);
        next
    }
}

impl StartedReply {
    /// Starts a reply after row `first` of `input`. The rows up to there may end with the reply's first ids:
    /// they were forced.
    fn new(ids: Vec<TokenId>, input: &SequenceInput, first: usize) -> Self {
        let rows = row_ids(input).get(..=first).unwrap_or_default();
        let forced = (0..=ids.len()).rev().find(|&len| rows.ends_with(&ids[..len])).unwrap_or(0);
        let first_slot = input.cached_len + first + 1 - forced;
        Self { ids, first_slot, last: 0..0, block_table: Vec::new() }
    }

    /// Returns true if the rows up to `first` are ids of the reply, starting at an id that the last call
    /// returned; the others were forced, and may have started in a step without logits.
    fn is_continued_by(&self, input: &SequenceInput, first: usize) -> bool {
        let row_ids = row_ids(input).get(..=first).unwrap_or_default();
        let index = input.cached_len.checked_sub(self.first_slot).filter(|&index| index >= self.last.start);
        let expected = index.and_then(|index| self.ids.get(index..));
        !row_ids.is_empty()
            && expected.is_some_and(|expected| expected.starts_with(row_ids))
            && input.block_tables[0].starts_with(&self.block_table)
    }

    /// Returns the id after `row` if the rows after `first` up to there are the reply's.
    fn id_after(&self, input: &SequenceInput, first: usize, row: usize, end_id: TokenId) -> Option<TokenId> {
        let id_at = |row: usize| self.ids.get(input.cached_len + row - self.first_slot).copied();
        let followed = (first + 1..=row).all(|row| id_at(row) == row_ids(input).get(row).copied());
        followed.then(|| id_at(row + 1).unwrap_or(end_id))
    }
}

/// Ids of the rows; empty for embedding rows.
fn row_ids(input: &SequenceInput) -> &[TokenId] {
    match &input.input {
        Input::Ids(ids) => ids,
        Input::Embeddings(_) => &[],
    }
}
