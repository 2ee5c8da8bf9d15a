//! `lm inspect`: properties and requirements of a model, read from the headers of its files.

mod memory;
mod summary;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::args::ModelPath;
use crate::model;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  lm inspect
  lm inspect Qwen/Qwen3-0.6B
  lm inspect ./Qwen3-0.6B-Q4_K_M.gguf
  lm inspect ./Qwen3-0.6B --json | jq .memory.needs

Memory is weights, a full cache for one conversation of that many tokens, and what is beside them.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// GGUF file with the vision encoder of a GGUF model [default: the only mmproj*.gguf beside the model]
    #[arg(long, value_name = "FILE")]
    mmproj: Option<PathBuf>,
    /// Print one JSON object, with every tensor
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let path = model::stored(args.model.get());
    let folder = model::folder_with(path, args.mmproj.as_deref())?;
    let summary = Summary::read(&folder, path)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", summary.to_json())?;
    } else {
        write!(out, "{summary}")?;
    }
    Ok(())
}
