//! Low-level runner of one sequence: a model with its KV cache, which reads token ids in pieces.

use std::ops::Range;

use anyhow::{Result, ensure};
use lm_model::{
    Batch, CacheGroup, CacheLayout, KvPool, LoadedModel, LogitRows, Logits, NO_PAGE, PAGE_LEN, PageId,
    Retention, SequenceInput,
};
use lm_tokenizer::TokenId;

/// A model with a KV cache for one sequence.
pub struct Reader<'a> {
    model: &'a LoadedModel,
    cache: KvPool,
    /// Block table of each group of the cache.
    tables: Vec<Vec<PageId>>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of sequences of up to `context` tokens.
    ///
    /// # Errors
    /// When the model's context is shorter.
    pub fn new(model: &'a LoadedModel, context: usize) -> Result<Self> {
        let limit = model.model.info().context_len;
        ensure!(context <= limit, "{context} tokens at a time: the model holds {limit}");
        let num_pages = context.div_ceil(PAGE_LEN);
        let cache = model.model.new_cache(num_pages)?;
        let tables = block_tables(cache.layout(), num_pages as PageId);
        Ok(Self { model, cache, tables })
    }

    /// Runs a piece of `ids` and returns the requested logits rows; the pieces before it must have been run
    /// before.
    ///
    /// # Errors
    /// When the model fails, for example at an unknown id.
    pub fn read(&mut self, ids: &[TokenId], piece: Range<usize>, logits: LogitRows) -> Result<Logits> {
        let pages = piece.end.div_ceil(PAGE_LEN);
        for (table, group) in self.tables.iter_mut().zip(self.cache.layout().groups()) {
            if group.retention == Retention::State {
                place_states(table, &piece);
            }
        }
        let sequence = SequenceInput {
            block_tables: self.tables.iter().map(|table| table[..pages].to_vec()).collect(),
            logits,
            adapter: self.model.adapters.first().cloned(),
            final_len: ids.len(),
            ..SequenceInput::ids(&ids[piece.clone()], piece.start, [])
        };
        Ok(self.model.model.forward(&Batch { sequences: vec![sequence] }, &mut self.cache)?)
    }
}

/// Block tables of one sequence: `num_pages` pages for each group; groups of the same space get consecutive
/// ranges. Those of states are placed call by call ([`place_states`]).
fn block_tables(layout: &CacheLayout, num_pages: PageId) -> Vec<Vec<PageId>> {
    let groups = layout.groups();
    let table = |(index, group): (usize, &CacheGroup)| {
        let before = groups[..index].iter().filter(|other| other.space == group.space).count() as PageId;
        match group.retention {
            // The first page of the group, for its first state.
            Retention::State => vec![before * STATES; num_pages as usize],
            Retention::All | Retention::Window(_) => (before * num_pages..(before + 1) * num_pages).collect(),
        }
    };
    groups.iter().enumerate().map(table).collect()
}

/// Pages of a group of states: the state before a piece, a snapshot within it, and the state after it.
const STATES: PageId = 3;

/// Gives the states of a piece separate pages; all others are dropped, since a pool has fewer states than
/// pages of tokens.
fn place_states(table: &mut [PageId], piece: &Range<usize>) {
    let last = piece.start.div_ceil(PAGE_LEN).checked_sub(1);
    let before = table[last.unwrap_or(0)];
    // Groups have multiples of three pages before theirs.
    let first = table.iter().filter(|&&page| page != NO_PAGE).min().map_or(0, |page| page / STATES * STATES);
    let mut free = (first..first + STATES).filter(|&page| last.is_none() || page != before);
    table.fill(NO_PAGE);
    for index in Retention::State.written(piece.start, piece.len()) {
        table[index] = free.next().expect("two states are written");
    }
    if let Some(last) = last {
        table[last] = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_kernels::KvGeometry;

    #[test]
    fn groups_of_a_space_have_separate_pages() {
        let full = KvGeometry { num_kv_heads: 1, head_dim: 8, window: None, shared_with: None };
        let near = KvGeometry { window: Some(4), ..full };
        let wide = KvGeometry { head_dim: 16, ..full };
        let tables = block_tables(&CacheLayout::new([near, full, wide]), 2);
        assert_eq!(tables, [[0, 1], [2, 3], [0, 1]]);
    }

    #[test]
    fn states_of_a_piece_use_three_pages() {
        let mut table = vec![STATES; 40];
        let mut last = None;
        for piece in [0..5, 5..32, 32..33, 33..700, 700..701, 701..1280] {
            place_states(&mut table, &piece);
            let end = piece.end.div_ceil(PAGE_LEN) - 1;
            let used: Vec<PageId> = table.iter().copied().filter(|&page| page != NO_PAGE).collect();
            let distinct: std::collections::BTreeSet<_> = used.iter().collect();
            assert_eq!(distinct.len(), used.len(), "{piece:?}: {used:?}");
            assert!(used.iter().all(|page| (STATES..2 * STATES).contains(page)), "{piece:?}: {used:?}");
            assert!(
                last.is_none_or(|(index, page)| table[index] == page),
                "the state before {piece:?} stays"
            );
            assert_ne!(table[end], NO_PAGE, "the state after {piece:?}");
            last = Some((end, table[end]));
        }
    }
}
