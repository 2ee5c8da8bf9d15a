//! `lm inspect`: properties and requirements of a model, read from the headers of its files.

mod cpu;
mod memory;
mod probe;
mod summary;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::args::{ModelPath, TemplateArgs};
use crate::model;
use cpu::Cpu;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  lm inspect
  lm inspect Qwen/Qwen3-0.6B
  lm inspect ./Qwen3-0.6B-Q4_K_M.gguf
  lm inspect ./Qwen3-0.6B --json | jq .memory.needs
  lm inspect ./Qwen3-0.6B --probe-tools
  lm inspect --cpu

Memory is weights, a full cache for one conversation of that many tokens, and what is beside them.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// GGUF file with the vision encoder of a GGUF model [default: the only mmproj*.gguf beside the model]
    #[arg(long, value_name = "FILE")]
    mmproj: Option<PathBuf>,
    #[command(flatten)]
    template: TemplateArgs,
    /// Print one JSON object, with every tensor
    #[arg(long, conflicts_with = "probe_tools")]
    json: bool,
    /// Show the processor instead: its kernels, and how weights are prefetched
    #[arg(long, conflicts_with_all = ["path", "named", "mmproj", "probe_tools"])]
    cpu: bool,
    /// Load the model, ask it a dozen questions with tools, and keep the treatment of its calls that gave
    /// clearly more right answers: with or without a note on their syntax, and JSON without markers as a call
    /// or as text. The choice is in lm-calls.json in the model's folder, or FILE.gguf.lm-calls.json
    #[arg(long)]
    probe_tools: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if args.cpu {
        let cpu = Cpu::read()?;
        match args.json {
            true => writeln!(out, "{}", cpu.to_json())?,
            false => write!(out, "{cpu}")?,
        }
        return Ok(());
    }
    let path = model::stored(args.model.get());
    if args.probe_tools {
        return probe::run(path);
    }
    let folder = model::folder_with(path, args.mmproj.as_deref())?;
    let summary = Summary::read(&folder, path, args.template.files(&folder)?)?;
    if args.json {
        writeln!(out, "{}", summary.to_json())?;
    } else {
        write!(out, "{summary}")?;
    }
    Ok(())
}
