//! Public model shapes, and checkpoints of them with random weights.

mod config;
mod public;
mod tensors;
mod tokenizer;
mod weights;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use public::SHAPES;

/// The sizes of a decoder with a tied output head.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    family: Family,
    layers: usize,
    hidden: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// Width inside a feed-forward block, or inside each expert.
    intermediate: usize,
    vocab: usize,
    context: usize,
    rope_theta: f64,
}

/// The architecture, with the sizes that it alone has.
#[derive(Clone, Copy)]
enum Family {
    /// Sliding layers, and a full one every so many.
    Gemma3 {
        window: usize,
        full_every: usize,
    },
    /// MXFP4 experts.
    GptOss(Experts),
    /// Short convolutions of this many taps, attention in the layers named.
    Lfm2 {
        taps: usize,
        attention: &'static [usize],
    },
    Llama,
    Qwen3,
    Qwen3Moe(Experts),
}

/// What each layer has in place of a feed-forward block.
#[derive(Clone, Copy)]
struct Experts {
    count: usize,
    /// How many a row goes through.
    per_row: usize,
}

pub fn names() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// The folder with the checkpoint of a shape, written when it is not there yet.
pub fn checkpoint(name: &str) -> Result<PathBuf> {
    let shape = SHAPES.iter().find(|shape| shape.name == name).with_context(|| {
        format!("no shape is called {name}; known: {}", names().collect::<Vec<_>>().join(", "))
    })?;
    let folder = process::root().join("target/bench").join(name);
    if !folder.join("config.json").exists() {
        eprintln!("writing a checkpoint with random weights to target/bench/{name}");
        fs::create_dir_all(&folder)?;
        weights::write(&tensors::of_shape(shape), &folder.join("model.safetensors"))?;
        fs::write(folder.join("tokenizer.json"), tokenizer::of_size(shape.vocab).to_string())?;
        // The last file: when it is there, so are the others.
        fs::write(folder.join("config.json"), config::of_shape(shape).to_string())?;
    }
    Ok(folder)
}
