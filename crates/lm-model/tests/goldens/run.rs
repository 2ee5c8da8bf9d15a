//! Sequences in one cache, each with its own pages, none of them adjacent.

use lm_model::{
    Batch, CacheGroup, CausalLm, Embeddings, Input, KvPool, LogitRows, PAGE_LEN, PageId, SequenceInput,
};
use lm_tokenizer::TokenId;

/// A cache for up to `sequences` sequences of `max_len` tokens.
pub struct Cache<'a> {
    model: &'a dyn CausalLm,
    pool: KvPool,
    sequences: usize,
    lengths: Vec<usize>,
    /// Minimum final length of each sequence.
    final_lens: Vec<usize>,
}

impl<'a> Cache<'a> {
    pub fn new(model: &'a dyn CausalLm, sequences: usize, max_len: usize) -> anyhow::Result<Self> {
        let pages = sequences * max_len.div_ceil(PAGE_LEN);
        let pool = model.new_cache(pages)?;
        // A pool has fewer states; here each page of a sequence has one.
        let fits = |pool: &KvPool| {
            let groups = pool.layout().groups();
            let in_space = |space| groups.iter().filter(|group| group.space == space).count();
            (0..pool.layout().num_spaces()).all(|space| pool.num_pages(space) >= pages * in_space(space))
        };
        let pool = if fits(&pool) { pool } else { model.new_cache(16 * pages)? };
        Ok(Self { model, pool, sequences, lengths: vec![0; sequences], final_lens: vec![0; sequences] })
    }

    /// Sets the final length of a sequence.
    pub fn set_final_len(&mut self, sequence: usize, len: usize) {
        self.final_lens[sequence] = len;
    }

    /// Appends rows to some sequences in one call and returns the requested logits of each.
    pub fn forward(&mut self, rows: Vec<(usize, Input, LogitRows)>) -> anyhow::Result<Vec<Vec<Vec<f32>>>> {
        let mut batch = Batch::default();
        for (sequence, input, logits) in rows {
            let cached_len = self.lengths[sequence];
            self.lengths[sequence] += input.rows();
            let new = match input {
                Input::Ids(ids) => SequenceInput::ids(ids, cached_len, []),
                Input::Embeddings(rows) => SequenceInput::embeddings(rows, cached_len, []),
            };
            let (block_tables, final_len) =
                (self.tables(sequence), self.final_lens[sequence].max(new.final_len));
            batch.sequences.push(SequenceInput { logits, block_tables, final_len, ..new });
        }
        let logits = self.model.forward(&batch, &mut self.pool)?;
        let of_sequence = |index| logits.sequence(index).rows().map(<[f32]>::to_vec).collect();
        Ok((0..logits.num_sequences()).map(of_sequence).collect())
    }

    /// Appends rows to the first sequence.
    pub fn push(&mut self, input: Input, logits: LogitRows) -> anyhow::Result<Vec<Vec<f32>>> {
        Ok(self.forward(vec![(0, input, logits)])?.remove(0))
    }

    /// Pages of the sequences and groups alternate, so that no sequence has two adjacent ones.
    fn tables(&self, sequence: usize) -> Vec<Vec<PageId>> {
        let (count, groups) = (self.lengths[sequence].div_ceil(PAGE_LEN), self.pool.layout().groups());
        let table = |group: usize| {
            let alike = |groups: &[CacheGroup]| {
                groups.iter().filter(|other| other.space == self.pool.layout().groups()[group].space).count()
            };
            let (in_space, before) = (alike(groups), alike(&groups[..group]));
            let page = |page: usize| ((page * self.sequences + sequence) * in_space + before) as PageId;
            (0..count).map(page).collect()
        };
        (0..groups.len()).map(table).collect()
    }
}

/// Runs the prompt and then `count` greedy tokens, one per call; end-of-sequence tokens do not stop it.
pub fn greedy(model: &dyn CausalLm, prompt: &[TokenId], count: usize) -> anyhow::Result<Vec<TokenId>> {
    let mut cache = Cache::new(model, 1, prompt.len() + count)?;
    let mut input = prompt.to_vec();
    let mut tokens = Vec::new();
    while tokens.len() < count {
        let logits = cache.push(Input::Ids(input), LogitRows::Last)?;
        tokens.push(argmax(&logits[0]));
        input = tokens[tokens.len() - 1..].to_vec();
    }
    Ok(tokens)
}

fn argmax(logits: &[f32]) -> TokenId {
    (1..logits.len()).fold(0, |best, id| if logits[id] > logits[best] { id } else { best }) as TokenId
}

/// A part of some embedding rows.
pub fn slice(rows: &Embeddings, from: usize, to: usize) -> Embeddings {
    let values = rows.values[from * rows.hidden_size..to * rows.hidden_size].to_vec();
    Embeddings { values, hidden_size: rows.hidden_size }
}
