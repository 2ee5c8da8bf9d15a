//! Low-level runner of one sequence: a model with its KV cache, fed with token ids piece by piece.

use std::ops::Range;

use anyhow::{Result, ensure};
use lm_model::{
    Batch, CacheGroup, CacheLayout, KvPool, LoadedModel, LogitRows, Logits, PAGE_LEN, PageId, SequenceInput,
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

    /// Runs a piece of `ids` and returns the requested logits rows; the pieces before it must have been run before.
    ///
    /// # Errors
    /// When the model fails, for example at an unknown id.
    pub fn read(&mut self, ids: &[TokenId], piece: Range<usize>, logits: LogitRows) -> Result<Logits> {
        let pages = piece.end.div_ceil(PAGE_LEN);
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

/// Block tables of one sequence: `num_pages` pages for each group; groups of the same space get consecutive ranges.
fn block_tables(layout: &CacheLayout, num_pages: PageId) -> Vec<Vec<PageId>> {
    let groups = layout.groups();
    let table = |(index, group): (usize, &CacheGroup)| {
        let before = groups[..index].iter().filter(|other| other.space == group.space).count() as PageId;
        (before * num_pages..(before + 1) * num_pages).collect()
    };
    groups.iter().enumerate().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_kernels::KvGeometry;

    #[test]
    fn groups_of_a_space_have_pages_of_their_own() {
        let full = KvGeometry { num_kv_heads: 1, head_dim: 8, window: None, shared_with: None };
        let near = KvGeometry { window: Some(4), ..full };
        let wide = KvGeometry { head_dim: 16, ..full };
        let tables = block_tables(&CacheLayout::new([near, full, wide]), 2);
        assert_eq!(tables, [[0, 1], [2, 3], [0, 1]]);
    }
}
