//! What the machine allows a model: its memory and its arithmetic alone, with nothing lost in between.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use lm_kernels::{Pool, WeightFormat, host};
use lm_model::ModelInfo;

use super::runs;

/// Rates of the machine and sizes of the model, in bytes, operations and seconds.
#[derive(Debug)]
pub struct Limits {
    pub read_rate: f64,
    pub product_rate: f64,
    pub weight_bytes: f64,
    pub decode_bytes: f64,
    /// Seconds to read the model's files.
    pub file_read: Option<f64>,
    cache_bytes_per_token: f64,
    operations_per_token: f64,
}

impl Limits {
    pub fn measure(info: &ModelInfo, cache_bytes_per_token: usize, file_read: Option<f64>) -> Result<Self> {
        let pool = Pool::global();
        let product_rate = match info.format {
            WeightFormat::Q4 | WeightFormat::Q8 => host::limits::byte_product_rate(pool),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => {
                host::limits::multiply_add_rate(pool)
            }
        };
        Ok(Self {
            read_rate: host::limits::read_rate(pool)?,
            product_rate,
            weight_bytes: info.weight_bytes as f64,
            decode_bytes: info.decode_bytes as f64,
            file_read,
            cache_bytes_per_token: cache_bytes_per_token as f64,
            operations_per_token: 2.0 * info.layer_parameters as f64,
        })
    }

    /// Tokens a second of a prompt, without what its attention takes.
    pub fn prefill(&self, tokens: usize) -> f64 {
        tokens as f64 / self.step(tokens, 0.0)
    }

    /// Tokens a second in the middle of a decode that begins at a context.
    pub fn decode(&self, context: usize) -> f64 {
        1.0 / self.step(1, (context + runs::OUTPUT / 2) as f64)
    }

    /// Tokens a second of several sequences together.
    pub fn batch(&self, sequences: usize) -> f64 {
        let prompts = self.step(sequences * runs::PROMPT, 0.0);
        let cached = sequences * (runs::PROMPT + runs::OUTPUT / 2);
        let replies = runs::OUTPUT as f64 * self.step(sequences, cached as f64);
        (sequences * runs::OUTPUT) as f64 / (prompts + replies)
    }

    /// Milliseconds of a second turn.
    pub fn second_turn(&self, context: usize) -> f64 {
        self.step(runs::TURN, context as f64) * 1e3
    }

    /// Seconds of a step: what must be read, or what must be multiplied.
    fn step(&self, rows: usize, cached: f64) -> f64 {
        let bytes = self.decode_bytes + cached * self.cache_bytes_per_token;
        (bytes / self.read_rate).max(rows as f64 * self.operations_per_token / self.product_rate)
    }
}

/// Seconds that a plain read of the weights' files takes; `None` without a folder. Brings them into the system's cache on the way.
pub fn read_files(folder: Option<&Path>) -> Result<Option<f64>> {
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else { return Ok(None) };
    let paths: Vec<_> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .collect();
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

    #[test]
    fn a_step_is_as_long_as_its_reads_or_its_products() {
        let limits = Limits {
            read_rate: 1000.0,
            product_rate: 100.0,
            weight_bytes: 90.0,
            decode_bytes: 90.0,
            file_read: None,
            cache_bytes_per_token: 1.0,
            operations_per_token: 2.0,
        };
        assert_eq!(limits.step(1, 10.0), 0.1);
        assert_eq!(limits.step(100, 10.0), 2.0);
        assert_eq!(limits.prefill(100), 50.0);
    }
}
