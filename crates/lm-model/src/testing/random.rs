use std::sync::Arc;

use lm_kernels::{
    AttentionSpec, CacheLayout, Device, KvDtype, KvGeometry, KvPool, LayerCache, RaggedLayout, StatePages,
    attention, attention_shared, from_host, to_host,
};

use crate::batch::{Batch, Embeddings, EncodedMedia, Input, Position, SequenceInput};
use crate::decoder::layout::{layouts, logit_rows};
use crate::error::Result;
use crate::spec::BidirectionalLayers;

pub(super) const HEAD_DIM: usize = 16;

/// Parallel layers without weights: each slot has a random vector of its id and position, and a row's logits
/// are random projections of what its layers compute from the slots up to it. A KV layer takes the mean over
/// its visible slots; a state layer takes a sum with decaying weights of older slots. This lives in the cache
/// only, so a page that was not written, not copied or given to two sequences changes the logits.
#[derive(Debug)]
pub(super) struct Random {
    seed: u64,
    layout: CacheLayout,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let layer = KvGeometry { num_kv_heads: 1, head_dim: HEAD_DIM, window: None, shared_with: None };
        Self { seed, layout: CacheLayout::new([layer]) }
    }

    pub(super) fn set_layers(&mut self, layout: CacheLayout) {
        for layer in layout.layers() {
            if let LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, .. }) = layer {
                assert_eq!((*num_kv_heads, *head_dim), (1, HEAD_DIM), "heads of a fake layer");
            }
        }
        self.layout = layout;
    }

    pub(super) fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        Ok(KvPool::new(Device::Cpu, &self.layout, num_pages, KvDtype::F32)?)
    }

    /// Hidden states of the requested rows, concatenated.
    pub(super) fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> Result<Vec<f32>> {
        let rows: Vec<[f32; HEAD_DIM]> = batch.sequences.iter().flat_map(|s| self.vectors(s)).collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let layouts = layouts(batch, self.layout.groups(), BidirectionalLayers::All);
        let mut hidden = vec![[0.0; HEAD_DIM]; rows.len()];
        for (layer, kind) in self.layout.layers().iter().enumerate() {
            let made = match kind {
                LayerCache::Kv(geometry) => {
                    means(&rows, geometry, layer, &layouts[self.layout.group_of(layer)], cache)?
                }
                LayerCache::State { len } => {
                    fold_states(&rows, *len, cache.states(layer), &layouts[self.layout.group_of(layer)])
                }
            };
            let sums = hidden.iter_mut().flatten().zip(made.iter().flatten());
            sums.for_each(|(sum, made)| *sum += made);
        }
        let (selected, _) = logit_rows(batch);
        Ok(selected.into_iter().flat_map(|row| hidden[row as usize]).collect())
    }

    /// Logits of one row of hidden states.
    pub(super) fn project(&self, hidden: &[f32], width: usize) -> Vec<f32> {
        let logit = |id| {
            let direction = self.vector(u64::MAX - id);
            hidden.iter().zip(direction).map(|(hidden, direction)| hidden * direction).sum::<f32>()
        };
        (0..width as u64).map(logit).collect()
    }

    /// Random vectors of a sequence's new rows.
    fn vectors(&self, sequence: &SequenceInput) -> Vec<[f32; HEAD_DIM]> {
        let numbers = sequence.positions.iter().enumerate();
        let vector =
            |(row, &position)| self.vector(row_number(sequence, row) << 32 ^ position_number(position));
        numbers.map(vector).collect()
    }

    /// Vector of numbers in -1..1, determined by `number`.
    fn vector(&self, number: u64) -> [f32; HEAD_DIM] {
        let mut state = mix(self.seed ^ mix(number));
        std::array::from_fn(|_| {
            state = mix(state);
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
    }
}

/// Means over each row's visible slots, with a variance independent of their number.
fn means(
    rows: &[[f32; HEAD_DIM]],
    geometry: &KvGeometry,
    layer: usize,
    layout: &Arc<RaggedLayout>,
    cache: &mut KvPool,
) -> Result<Vec<[f32; HEAD_DIM]>> {
    let values = from_host(rows.concat(), [rows.len(), 1, HEAD_DIM], &Device::Cpu.burn()?);
    // Equal scores: attention is the mean.
    let spec = AttentionSpec {
        num_heads: 1,
        num_kv_heads: 1,
        head_dim: HEAD_DIM,
        scale: 1.0,
        window: geometry.window,
        soft_cap: None,
        sinks: None,
    };
    let zeros = values.zeros_like();
    let means = match geometry.shared_with {
        None => attention(zeros.clone(), zeros, values, cache, layer, layout, &spec),
        Some(_) => attention_shared(zeros, cache, layer, layout, &spec),
    };
    let mut means: Vec<[f32; HEAD_DIM]> = to_host(means)?.as_chunks().0.to_vec();
    let seen = layout.sequences.iter().flat_map(|sequence| {
        (0..sequence.rows.len()).map(|row| sequence.visible(row, geometry.window).len())
    });
    for (mean, seen) in means.iter_mut().zip(seen) {
        mean.iter_mut().for_each(|mean| *mean *= (seen as f32).sqrt());
    }
    Ok(means)
}

/// Computes the state after each row; writes the states that a later call may start from to their pages.
fn fold_states(
    rows: &[[f32; HEAD_DIM]],
    len: usize,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> Vec<[f32; HEAD_DIM]> {
    let mut made = Vec::new();
    for run in layout.sequences.iter().flat_map(|sequence| sequence.state_runs()) {
        let mut state = run.from.map_or_else(|| vec![0.0; len], |page| states.get(page).to_vec());
        for vector in &rows[run.rows] {
            state.iter_mut().zip(vector.iter().cycle()).for_each(|(state, x)| *state = 0.9 * *state + x);
            made.push(std::array::from_fn(|i| state[i % len]));
        }
        states.get_mut(run.to).copy_from_slice(&state);
    }
    made
}

/// Returns a number that identifies the id of a row, or all numbers of a media item's row; rows of `embed`
/// have the number of their id.
pub(super) fn row_number(sequence: &SequenceInput, row: usize) -> u64 {
    if let Some(slice) = sequence.media.iter().find(|slice| slice.rows().contains(&row)) {
        let values = slice.media.rows.slice(slice.range.clone());
        let values =
            &values[(row - slice.row) * slice.media.rows.hidden_size..][..slice.media.rows.hidden_size];
        return values.iter().fold(0, |number, value| mix(number ^ u64::from(value.to_bits())));
    }
    match &sequence.input {
        Input::Ids(ids) => u64::from(ids[row]),
        Input::Embeddings(rows) => u64::from(rows.values[row * rows.hidden_size].to_bits()),
    }
}

/// Returns the position of text, and a number of its three parts for a row of an image.
fn position_number(position: Position) -> u64 {
    let Position { temporal, height, width } = position;
    let differences = u64::from(temporal ^ height) << 32 | u64::from(temporal ^ width);
    u64::from(temporal) ^ differences.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Random rows of a media item, determined by `seed`.
pub(super) fn encoded(seed: u64, rows: usize) -> EncodedMedia {
    let mut state = seed;
    let value = || {
        state = mix(state);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let values = std::iter::repeat_with(value).take(rows * HEAD_DIM).collect();
    EncodedMedia { rows: Embeddings { values, hidden_size: HEAD_DIM }, deep: Vec::new() }
}

/// SplitMix64's output function (Steele et al., OOPSLA 2014).
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
