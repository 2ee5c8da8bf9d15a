//! Roofline limits of a model on this machine: memory bandwidth and arithmetic throughput.

use std::fs::{self, File};
use std::io::Read;
use std::time::Instant;

use anyhow::{Context, Result};
use lm_kernels::host::limits::{self, BandwidthProbe};
use lm_kernels::{KvGeometry, LayerCache, PAGE_LEN, PagedLayer, Pool, WeightFormat};
use lm_model::{AttentionShape, CacheLayout, KvDtype, ModelInfo};

use super::runs;
use crate::locate::Located;

/// Rates of the machine, in bytes and operations per second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub read: f64,
    /// Rate of the products that the weights' format needs.
    pub product: f64,
    /// Rate of the products that the type of keys and values needs.
    pub attention: f64,
}

impl Rates {
    /// Maximum of the two: a machine is at least as fast as it was measured.
    pub fn best(self, other: Self) -> Self {
        Self {
            read: self.read.max(other.read),
            product: self.product.max(other.product),
            attention: self.attention.max(other.attention),
        }
    }
}

/// The machine, to be measured repeatedly: other processes may load it.
#[derive(Debug)]
pub struct Machine {
    memory: BandwidthProbe,
    product_rate: fn(&Pool) -> f64,
    attention_rate: fn(&Pool) -> f64,
}

impl Machine {
    /// Creates it for weights of a format and a type of keys and values.
    pub fn new(format: WeightFormat, kv: KvDtype) -> Result<Self> {
        let product_rate = match format {
            WeightFormat::Q4 | WeightFormat::Q8 | WeightFormat::Ggml(_) => limits::int8_rate,
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => limits::multiply_add_rate,
        };
        let attention_rate = match kv {
            KvDtype::Q8 => limits::int8_rate,
            KvDtype::F32 | KvDtype::F16 => limits::multiply_add_rate,
        };
        Ok(Self { memory: BandwidthProbe::new()?, product_rate, attention_rate })
    }

    /// Measures the current rates.
    pub fn rates(&self) -> Rates {
        let pool = Pool::global();
        Rates {
            read: self.memory.read_bandwidth(pool),
            product: (self.product_rate)(pool),
            attention: (self.attention_rate)(pool),
        }
    }
}

/// Cache traffic of a step for one sequence.
#[derive(Debug)]
pub struct CacheCosts {
    layout: CacheLayout,
    dtype: KvDtype,
}

impl CacheCosts {
    pub fn new(layout: CacheLayout, dtype: KvDtype) -> Self {
        Self { layout, dtype }
    }

    /// Bytes of a step after `tokens` tokens: keys and values within the window, and states, which are read
    /// and written.
    fn bytes(&self, tokens: usize) -> f64 {
        let of_layer = |layer: &LayerCache| match *layer {
            LayerCache::State { len } => (2 * len * size_of::<f32>()) as f64,
            LayerCache::Kv(KvGeometry { num_kv_heads, head_dim, window, .. }) => {
                let page = PagedLayer::page_bytes(self.dtype, num_kv_heads, head_dim);
                tokens.min(window.unwrap_or(tokens)) as f64 * (page as f64 / PAGE_LEN as f64)
            }
        };
        self.layout.layers().iter().map(of_layer).sum()
    }
}

/// Costs of a model, in bytes and operations.
#[derive(Debug)]
pub struct Costs {
    pub weight_bytes: f64,
    /// Weight bytes of a step over one row; of experts only the active ones.
    pub decode_bytes: f64,
    cache: CacheCosts,
    operations_per_token: f64,
    attention: Vec<AttentionShape>,
}

impl Costs {
    pub fn of(info: &ModelInfo, cache: CacheCosts) -> Self {
        Self {
            weight_bytes: info.weight_bytes as f64,
            decode_bytes: info.decode_bytes as f64,
            cache,
            operations_per_token: 2.0 * info.layer_parameters as f64,
            attention: info.attention.clone(),
        }
    }

    /// Prompt tokens per second.
    pub fn prefill(&self, rates: Rates, tokens: usize) -> f64 {
        tokens as f64 / self.step(rates, &Step { rows: tokens, ..Step::default() })
    }

    /// Tokens per second in the middle of a decode that begins at `context` tokens.
    pub fn decode(&self, rates: Rates, context: usize) -> f64 {
        1.0 / self.step(rates, &Step { cached_tokens: context + runs::OUTPUT / 2, ..Step::default() })
    }

    /// Tokens per second of several concurrent sequences.
    pub fn batch(&self, rates: Rates, sequences: usize) -> f64 {
        let cached_tokens = runs::PROMPT + runs::OUTPUT / 2;
        let prompts = self.step(rates, &Step { sequences, rows: runs::PROMPT, ..Step::default() });
        let reply = self.step(rates, &Step { sequences, cached_tokens, ..Step::default() });
        (sequences * runs::OUTPUT) as f64 / (prompts + runs::OUTPUT as f64 * reply)
    }

    /// Milliseconds to the first token of a second turn.
    pub fn second_turn(&self, rates: Rates, cached_tokens: usize) -> f64 {
        self.step(rates, &Step { rows: runs::TURN, cached_tokens, ..Step::default() }) * 1e3
    }

    /// Seconds of a step: its memory time or its arithmetic time, whichever is longer.
    fn step(&self, rates: Rates, step: &Step) -> f64 {
        let sequences = step.sequences as f64;
        let read = self.decode_bytes + sequences * self.cache.bytes(step.cached_tokens);
        let linear = sequences * step.rows as f64 * self.operations_per_token / rates.product;
        let attention = sequences * self.attention_operations(step) / rates.attention;
        (read / rates.read).max(linear + attention)
    }

    /// Operations of attention for the new rows of one sequence: a multiply-add for each element of a query
    /// and slot that it sees, once with the key and once with the value.
    fn attention_operations(&self, step: &Step) -> f64 {
        let seen = |window: Option<usize>| {
            let slots = step.cached_tokens + 1..=step.cached_tokens + step.rows;
            slots.map(|slots| slots.min(window.unwrap_or(slots))).sum::<usize>() as f64
        };
        self.attention.iter().map(|layer| 4.0 * layer.query_width as f64 * seen(layer.window)).sum()
    }
}

/// A forward pass of one or more equal sequences.
#[derive(Debug)]
struct Step {
    sequences: usize,
    /// New rows of each sequence.
    rows: usize,
    /// Tokens in the cache of each sequence before the step.
    cached_tokens: usize,
}

impl Default for Step {
    /// A decode step of one sequence without a context.
    fn default() -> Self {
        Self { sequences: 1, rows: 1, cached_tokens: 0 }
    }
}

/// Seconds of a plain read of the weights' files; `None` without a model path. As a side effect, it fills the
/// system's page cache.
pub fn read_files(model: Option<Located>) -> Result<Option<f64>> {
    let Some(Located { path, .. }) = model else { return Ok(None) };
    let mut paths: Vec<_> = if path.is_dir() {
        let files = fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.path()));
        files.filter(|path| path.extension().is_some_and(|extension| extension == "safetensors")).collect()
    } else {
        vec![path]
    };
    // Opening a pipe would wait for its writer; the load refuses it.
    paths.retain(|path| path.is_file());
    let mut buffer = vec![0; 1 << 20];
    let mut seconds = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        for path in &paths {
            let mut file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
            while file.read(&mut buffer)? > 0 {}
        }
        seconds = seconds.min(started.elapsed().as_secs_f64());
    }
    Ok(Some(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KV: KvGeometry = KvGeometry { num_kv_heads: 1, head_dim: 16, window: None, shared_with: None };

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("model.safetensors")).expect("can be created");
        let model = Located { path: folder.path().to_owned(), name: None, projector: None, bytes: None };
        assert!(read_files(Some(model)).expect("the load refuses it").is_some());
    }

    #[test]
    fn step_time_is_the_larger_of_reads_and_products() {
        let rates = Rates { read: 1000.0, product: 100.0, attention: 50.0 };
        let costs = Costs {
            weight_bytes: 90.0,
            decode_bytes: 100.0,
            cache: CacheCosts::new(CacheLayout::empty(), KvDtype::F16),
            operations_per_token: 2.0,
            attention: Vec::new(),
        };
        let step = |rows| Step { rows, ..Step::default() };
        assert_eq!(costs.step(rates, &step(1)), 0.1);
        assert_eq!(costs.step(rates, &step(100)), 2.0);
        assert_eq!(costs.step(rates, &Step { sequences: 3, ..step(100) }), 6.0);
        assert_eq!(costs.prefill(rates, 100), 50.0);
        let attention = vec![
            AttentionShape { query_width: 5, window: None },
            AttentionShape { query_width: 5, window: Some(2) },
        ];
        let costs = Costs { attention, ..costs };
        // Rows that see 4, 5 and 6 slots, or 2 each.
        assert_eq!(costs.attention_operations(&Step { cached_tokens: 3, ..step(3) }), 20.0 * (15.0 + 6.0));
        // 100 rows: 5,050 slots, or 199 with the window.
        assert_eq!(costs.step(rates, &step(100)), 2.0 + 20.0 * 5249.0 / 50.0);
    }

    #[test]
    fn window_bounds_reads_and_counts_state_writes() {
        let bytes = |layers: &[LayerCache], tokens| {
            CacheCosts::new(CacheLayout::new(layers.to_vec()), KvDtype::F16).bytes(tokens)
        };
        let near = LayerCache::Kv(KvGeometry { window: Some(10), ..KV });
        let state = LayerCache::State { len: 5 };
        assert_eq!(bytes(&[LayerCache::Kv(KV)], 100), 100.0 * 64.0);
        assert_eq!(bytes(&[near], 100), 10.0 * 64.0);
        assert_eq!(bytes(&[near], 4), 4.0 * 64.0);
        assert_eq!(bytes(&[state, LayerCache::Kv(KV)], 1), 40.0 + 64.0);
    }
}
