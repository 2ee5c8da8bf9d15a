//! A text in windows, and a model that reads them one after another.

use std::ops::Range;

use anyhow::{Result, ensure};
use lm_model::{
    Batch, CacheGroup, CacheLayout, CausalLm, KvPool, LogitRows, Logits, PAGE_LEN, PageId, SequenceInput,
    TokenId,
};

/// Rows of logits that are in memory at a time.
const PIECE: usize = 64;

/// The tokens of a text, cut into windows that are read on their own.
pub struct Windows {
    text: Vec<TokenId>,
    prefix: Vec<TokenId>,
    /// Tokens of the text in a window.
    stride: usize,
}

/// Tokens that are read from an empty cache.
pub struct Window {
    /// The prefix and a piece of the text.
    pub ids: Vec<TokenId>,
    /// The first token that has one before it and is none of the prefix.
    pub first_scored: usize,
}

impl Windows {
    /// Windows of `context` tokens, `prefix` included, that do not overlap.
    ///
    /// # Errors
    /// When the prefix leaves no room, or there is no token to score.
    pub fn new(text: Vec<TokenId>, prefix: Vec<TokenId>, context: usize) -> Result<Self> {
        let shortest = prefix.len().max(1) + 1;
        ensure!(context >= shortest, "a window needs at least {shortest} tokens, --context is {context}");
        let windows = Self { stride: context - prefix.len(), text, prefix };
        let (tokens, scored) = (windows.text.len(), windows.scored());
        ensure!(scored > 0, "no token of the text can be scored: it has {tokens}, and none follows another");
        Ok(windows)
    }

    pub fn iter(&self) -> impl Iterator<Item = Window> {
        self.text
            .chunks(self.stride)
            .map(|text| Window { ids: [&self.prefix, text].concat(), first_scored: self.prefix.len().max(1) })
    }

    /// Tokens of the text.
    pub fn tokens(&self) -> usize {
        self.text.len()
    }

    /// Tokens that are scored: without a prefix, all but the first of each window.
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
    /// The tokens whose logits say something about a scored token, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        let end = self.ids.len().saturating_sub(1);
        (0..end).step_by(PIECE).map(move |start| start..end.min(start + PIECE))
    }
}

/// A model with a cache for one window.
pub struct Reader<'a> {
    model: &'a dyn CausalLm,
    cache: KvPool,
    /// The pages of each group of the cache.
    tables: Vec<Vec<PageId>>,
}

impl<'a> Reader<'a> {
    /// A reader of windows of up to `context` tokens.
    ///
    /// # Errors
    /// When the model cannot hold so many.
    pub fn new(model: &'a dyn CausalLm, context: usize) -> Result<Self> {
        let limit = model.info().context_len;
        ensure!(context <= limit, "a window of {context} tokens: the model holds {limit}");
        let num_pages = context.div_ceil(PAGE_LEN);
        let cache = model.new_cache(num_pages)?;
        let tables = block_tables(cache.layout(), num_pages as PageId);
        Ok(Self { model, cache, tables })
    }

    /// The logits of all tokens of a piece, those before it having been read.
    ///
    /// # Errors
    /// When the model cannot read them: an id that it does not know.
    pub fn read(&mut self, window: &Window, piece: Range<usize>) -> Result<Logits> {
        let pages = piece.end.div_ceil(PAGE_LEN);
        let sequence = SequenceInput {
            block_tables: self.tables.iter().map(|table| table[..pages].to_vec()).collect(),
            logits: LogitRows::All,
            ..SequenceInput::ids(&window.ids[piece.clone()], piece.start, [])
        };
        Ok(self.model.forward(&Batch { sequences: vec![sequence] }, &mut self.cache)?)
    }
}

/// For each group as many pages as a window has, from its space; groups of a space take theirs one after another.
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
    fn windows_cover_the_text_and_begin_with_the_prefix() {
        let windows = Windows::new((10..17).collect(), vec![1, 2], 5).expect("there is room");
        let ids: Vec<_> = windows.iter().map(|window| window.ids).collect();
        assert_eq!(ids, [vec![1, 2, 10, 11, 12], vec![1, 2, 13, 14, 15], vec![1, 2, 16]]);
        assert!(windows.iter().all(|window| window.first_scored == 2));
        assert_eq!((windows.count(), windows.scored(), windows.tokens()), (3, 7, 7));
    }

    #[test]
    fn without_a_prefix_the_first_token_of_a_window_is_not_scored() {
        let windows = Windows::new((0..7).collect(), Vec::new(), 3).expect("there is room");
        let scored = |window: Window| window.ids.len() - window.first_scored;
        assert_eq!(windows.iter().map(scored).collect::<Vec<_>>(), [2, 2, 0]);
        assert_eq!((windows.count(), windows.scored()), (3, 4));
    }

    #[test]
    fn pieces_hold_every_token_but_the_last() {
        let window = |len: u32| Window { ids: (0..len).collect(), first_scored: 1 };
        let pieces = |len| window(len).pieces().collect::<Vec<_>>();
        assert!(pieces(1).is_empty());
        assert_eq!(pieces(65), vec![0..64; 1]);
        assert_eq!(pieces(66), [0..64, 64..65]);
    }

    #[test]
    fn groups_of_a_space_have_pages_of_their_own() {
        let full = KvGeometry { num_kv_heads: 1, head_dim: 8, window: None, shares: None };
        let near = KvGeometry { window: Some(4), ..full };
        let wide = KvGeometry { head_dim: 16, ..full };
        let tables = block_tables(&CacheLayout::new([near, full, wide]), 2);
        assert_eq!(tables, [[0, 1], [2, 3], [0, 1]]);
    }

    #[test]
    fn what_cannot_be_scored_is_refused() {
        for (text, prefix, context) in [(vec![], vec![], 8), (vec![1], vec![], 8), (vec![1, 2], vec![], 1)] {
            assert!(Windows::new(text, prefix, context).is_err());
        }
        assert!(Windows::new(vec![1, 2, 3], vec![7, 8], 2).is_err());
        assert_eq!(Windows::new(vec![1], vec![7], 2).expect("one is scored").scored(), 1);
    }
}
