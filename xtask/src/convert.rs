//! `cargo xtask convert`: a Hugging Face folder → a quantised folder, written by `lm convert`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// Folder with config.json, safetensors and tokenizer.json
    model: PathBuf,
    /// Folder to write; it must not exist yet
    output: PathBuf,
    /// Format of the weight matrices: q8 or q4
    #[arg(long, default_value = "q8")]
    quantize: String,
}

pub fn run(args: &Args) -> Result<()> {
    // cargo runs in the repository root: paths are meant from where the user stands.
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let mut lm = process::cargo(&["run", "--release", "--package", "lm-cli", "--", "convert"]);
    lm.arg(here.join(&args.model)).arg(here.join(&args.output)).args(["--quantize", &args.quantize]);
    process::run(&mut lm)
}
