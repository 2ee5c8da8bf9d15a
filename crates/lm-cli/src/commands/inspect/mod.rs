//! `lm inspect`: what a model folder holds, read from its headers.

mod summary;

use std::io::Write;

use anyhow::Result;

use crate::args::ModelPath;
use crate::model;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  lm inspect
  lm inspect ./Qwen3-0.6B --json | jq .template";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Print one JSON object, with every tensor
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let folder = model::folder(args.model.get())?;
    let summary = Summary::read(&folder)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", summary.to_json())?;
    } else {
        write!(out, "{summary}")?;
    }
    Ok(())
}
