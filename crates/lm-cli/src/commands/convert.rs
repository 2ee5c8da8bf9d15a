//! `lm convert`: a Hugging Face folder → a quantised folder.

use std::path::PathBuf;

use anyhow::{Context, Result};
use lm_model::{LoadProgress, WeightFormat};

use crate::args::quantized_format;
use crate::model;

const EXAMPLES: &str = "\
Examples:
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4
  lm chat ./Qwen3-0.6B-q4

Loading the copy gives the same weights as `--quantize` with the original, sooner.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder, or name such as Qwen/Qwen3-0.6B
    model: PathBuf,
    /// Folder to write; it must not exist yet
    output: PathBuf,
    /// Format of the weight matrices: q8 or q4
    #[arg(long, value_name = "FORMAT", default_value = "q8", value_parser = quantized_format)]
    quantize: WeightFormat,
}

pub fn run(args: &Args) -> Result<()> {
    let folder = model::folder(Some(&args.model))?;
    let bar = model::progress_bar("converting");
    let mut show = |progress: LoadProgress| model::show_progress(&bar, progress);
    let converted = folder.convert(&args.output, args.quantize, &mut show);
    bar.finish_and_clear();
    converted.with_context(|| format!("`{}` cannot be converted", args.model.display()))?;
    println!("{} in {}", args.quantize, args.output.display());
    Ok(())
}
