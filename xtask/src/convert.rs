//! `cargo xtask convert`: converts a model to a quantised folder or a GGUF file with `lm convert`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// Folder with config.json, safetensors and tokenizer.json, or a GGUF file
    model: PathBuf,
    /// Output path, which must not exist yet: a GGUF file if it ends in .gguf, otherwise a folder
    output: PathBuf,
    /// Format of the weight matrices: for a folder q8 or q4 [default: q8]; for a GGUF file q8_0, q4_0, f16,
    /// bf16 or f32 [default: q8_0]
    #[arg(long)]
    quantize: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    // cargo runs in the repository root: resolve paths relative to the user's working directory.
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let mut lm = process::cargo(&["run", "--release", "--package", "lm-cli", "--", "convert"]);
    lm.arg(here.join(&args.model)).arg(here.join(&args.output));
    if let Some(format) = &args.quantize {
        lm.args(["--quantize", format]);
    }
    process::run(&mut lm)
}
