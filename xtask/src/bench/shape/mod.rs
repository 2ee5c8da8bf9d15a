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

/// Sizes of a decoder with a tied output head.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    family: Family,
    layers: usize,
    hidden: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// Intermediate size of a feed-forward block, or of each expert.
    intermediate: usize,
    vocab: usize,
    context: usize,
    rope_theta: f64,
}

/// Architecture, with its specific sizes.
#[derive(Clone, Copy)]
enum Family {
    /// Sliding-window layers, with a full-attention layer every `full_every`.
    Gemma3 {
        window: usize,
        full_every: usize,
    },
    /// MXFP4 experts.
    GptOss(Experts),
    /// Short convolutions of `taps` taps, attention in the layers listed.
    Lfm2 {
        taps: usize,
        attention: &'static [usize],
    },
    Llama,
    Qwen3,
    Qwen3Moe(Experts),
    /// A Llama decoder with a SigLIP tower.
    SmolVlm(Tower),
}

/// Sizes of a vision tower and its projector.
#[derive(Clone, Copy)]
struct Tower {
    layers: usize,
    hidden: usize,
    heads: usize,
    intermediate: usize,
    /// Side of an image in pixels.
    image: usize,
    /// Side of a patch in pixels.
    patch: usize,
    /// Patches of a row of the decoder, in each direction.
    scale: usize,
}

/// Experts that replace each layer's feed-forward block.
#[derive(Clone, Copy)]
struct Experts {
    count: usize,
    /// Experts per row (top-k).
    per_row: usize,
}

/// Chat template of all shapes; parts of messages are texts and images.
const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n\
    {% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}\
    {% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\
    <|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Added tokens of an image in one view; the first is the placeholder of a row.
const IMAGE_TOKENS: &[&str] = &["<image>", "<fake_token_around_image>", "<global-img>"];

pub fn names() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// Returns the folder with the checkpoint of a shape, which is written if it does not exist.
pub fn checkpoint(name: &str) -> Result<PathBuf> {
    let shape = SHAPES.iter().find(|shape| shape.name == name).with_context(|| {
        format!("no shape is called {name}; known: {}", names().collect::<Vec<_>>().join(", "))
    })?;
    let folder = process::root().join("target/bench").join(name);
    if !folder.join("config.json").exists() {
        eprintln!("writing a checkpoint with random weights to target/bench/{name}");
        fs::create_dir_all(&folder)?;
        weights::write(&tensors::of_shape(shape), &folder.join("model.safetensors"))?;
        let added = if let Family::SmolVlm(_) = shape.family { IMAGE_TOKENS } else { &[] };
        fs::write(folder.join("tokenizer.json"), tokenizer::of_size(shape.vocab, added).to_string())?;
        fs::write(folder.join("chat_template.jinja"), TEMPLATE)?;
        if let Family::SmolVlm(tower) = shape.family {
            let settings = config::image_processor(tower).to_string();
            fs::write(folder.join("preprocessor_config.json"), settings)?;
        }
        // Written last: if it exists, so do the others.
        fs::write(folder.join("config.json"), config::of_shape(shape).to_string())?;
    }
    Ok(folder)
}
