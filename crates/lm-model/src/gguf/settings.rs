//! Metadata of a new file under the keys of its architecture.

use lm_formats::{GgufEntries, GgufEntry, Result};

use crate::config::invalid;
use crate::spec::{DecoderSpec, LayerSpec, Window};

/// Metadata of a model without its tokenizer and weights.
pub(crate) struct Settings {
    architecture: &'static str,
    pub(crate) entries: GgufEntries,
    /// Tensors that hold metadata.
    pub(crate) vectors: Vec<(String, Vec<f32>)>,
}

impl Settings {
    /// Creates the metadata of an architecture, empty.
    pub(crate) fn new(architecture: &'static str) -> Self {
        Self { architecture, entries: GgufEntries::default(), vectors: Vec::new() }
    }

    /// Sets the value of a key, given without the architecture prefix.
    pub(crate) fn put(&mut self, key: &str, value: GgufEntry) {
        self.entries.put(format!("{}.{key}", self.architecture), value);
    }

    /// Removes a key, given without the architecture prefix.
    pub(crate) fn remove(&mut self, key: &str) {
        self.entries.remove(&format!("{}.{key}", self.architecture));
    }

    /// Sets a size; `from` is its config.json key, for errors.
    pub(crate) fn put_size(&mut self, key: &str, from: &str, value: usize) -> Result<()> {
        self.put(key, size(from, value)?);
        Ok(())
    }

    /// Sets a size for each layer, or one for all if they are equal.
    pub(crate) fn put_sizes(&mut self, key: &str, from: &str, of_layers: &[usize]) -> Result<()> {
        match of_layers {
            [first, others @ ..] if others.iter().all(|other| other == first) => {
                return self.put_size(key, from, *first);
            }
            _ => {}
        }
        let small = |&n: &usize| i32::try_from(n).map_err(|_| invalid(from, n, "less than 2147483648"));
        self.put(key, GgufEntry::Ints(of_layers.iter().map(small).collect::<Result<_>>()?));
        Ok(())
    }

    /// Writes the key/value heads of each layer: 0 for one without attention.
    pub(crate) fn put_kv_heads(&mut self, spec: &DecoderSpec) -> Result<()> {
        let heads = |layer: &LayerSpec| layer.mixer.attention().map_or(0, |attention| attention.num_kv_heads);
        let heads: Vec<_> = spec.layers.iter().map(heads).collect();
        self.put_sizes("attention.head_count_kv", "num_key_value_heads", &heads)
    }

    /// Adds a tensor that holds metadata.
    pub(crate) fn put_vector(&mut self, name: &str, values: Vec<f32>) {
        self.vectors.push((name.to_owned(), values));
    }

    /// Writes which layers have a sliding window.
    pub(crate) fn put_windows(&mut self, spec: &DecoderSpec) {
        let slides = |layer: &LayerSpec| layer.mixer.window() != Window::Full;
        let slides = spec.layers.iter().map(slides).collect();
        self.put("attention.sliding_window_pattern", GgufEntry::Bools(slides));
    }
}

pub(crate) fn size(key: &str, size: usize) -> Result<GgufEntry> {
    let small = u32::try_from(size).map_err(|_| invalid(key, size, "less than 4294967296"));
    small.map(GgufEntry::Size)
}
