use std::sync::Arc;

use lm_kernels::{AttentionSpec, KvGeometry, KvPool, attention, from_host, to_host};

use crate::layout::{layout, wanted_rows};
use crate::{Batch, Device, Input, KvDtype, Result};

const HEAD_DIM: usize = 16;

/// One attention layer without weights: each slot keeps a random vector of its id and position, and a row's logits are
/// random projections of the mean over all slots up to it. It lives in the cache and nowhere else, so that a page that was
/// not written, not copied or given to two sequences shows in the logits.
#[derive(Debug)]
pub(super) struct Random {
    pub(super) seed: u64,
}

impl Random {
    pub(super) fn new_cache(num_pages: usize) -> Result<KvPool> {
        let layer = KvGeometry { num_kv_heads: 1, head_dim: HEAD_DIM, window: None };
        Ok(KvPool::new(Device::Cpu, &[layer], num_pages, KvDtype::F32)?)
    }

    /// The logits of the wanted rows, one after another.
    pub(super) fn logits(&self, batch: &Batch, cache: &mut KvPool, width: usize) -> Result<Vec<f32>> {
        let values: Vec<f32> = batch
            .sequences
            .iter()
            .flat_map(|sequence| row_numbers(&sequence.input).into_iter().zip(&sequence.positions))
            .flat_map(|(number, &position)| self.vector(number << 32 | u64::from(position)))
            .collect();
        let rows = values.len() / HEAD_DIM;
        if rows == 0 {
            return Ok(Vec::new());
        }
        let device = Device::Cpu.burn()?;
        let values = from_host(values, [rows, 1, HEAD_DIM], &device);
        // Equal scores: attention is the mean.
        let spec = AttentionSpec {
            num_heads: 1,
            num_kv_heads: 1,
            head_dim: HEAD_DIM,
            scale: 1.0,
            window: None,
            soft_cap: None,
        };
        let zeros = values.zeros_like();
        let means = attention(zeros.clone(), zeros, values, cache, 0, &Arc::new(layout(batch)), &spec);
        let means = to_host(means)?;
        let slots = batch.sequences.iter().flat_map(|s| s.cached_len + 1..=s.cached_len + s.rows());
        let slots: Vec<usize> = slots.collect();
        let (wanted, _) = wanted_rows(batch);
        let rows = wanted.into_iter().map(|row| row as usize);
        Ok(rows
            .flat_map(|row| self.project(&means[row * HEAD_DIM..][..HEAD_DIM], slots[row], width))
            .collect())
    }

    /// Logits with a spread that does not depend on the number of slots.
    fn project(&self, mean: &[f32], slots: usize, width: usize) -> Vec<f32> {
        let scale = (slots as f32).sqrt();
        let logit = |id| {
            let direction = self.vector(u64::MAX - id);
            scale * mean.iter().zip(direction).map(|(mean, direction)| mean * direction).sum::<f32>()
        };
        (0..width as u64).map(logit).collect()
    }

    /// A vector of numbers in -1..1 that belongs to `number`.
    fn vector(&self, number: u64) -> [f32; HEAD_DIM] {
        let mut state = mix(self.seed ^ mix(number));
        std::array::from_fn(|_| {
            state = mix(state);
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
    }
}

/// A number for each row that says which id it holds; the rows of `embed` give that of their id.
fn row_numbers(input: &Input) -> Vec<u64> {
    match input {
        Input::Ids(ids) => ids.iter().map(|&id| u64::from(id)).collect(),
        Input::Embeddings(rows) => {
            rows.values.chunks_exact(rows.hidden_size).map(|row| u64::from(row[0].to_bits())).collect()
        }
    }
}

/// SplitMix64's output function (Steele et al., OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
