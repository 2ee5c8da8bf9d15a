//! `cargo xtask bench`: `lm bench` on checkpoints of public shapes, for several weight formats, CPU paths and
//! KV cache types.

pub mod shape;
mod table;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use table::Figure;

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench --shape qwen3-0.6b
  cargo xtask bench --shape qwen3-0.6b --weights q4 --cpu avx512,avx2 --json before.jsonl
  cargo xtask bench --shape qwen3-0.6b --weights q4 --only decode --compare before.jsonl
  cargo xtask bench --shape smolvlm-256m --weights bf16 --kv f16 --only image,image_prefill --image cat.png
  cargo xtask bench --kernels";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Shape of the model, whose weights are random: qwen3-0.6b, qwen3-1.7b, llama3.2-1b, gemma3-270m,
    /// lfm2-350m, smolvlm-256m, qwen3-moe-small, gpt-oss-small, llama3.1-8b-small or tiny
    #[arg(long, default_value = "qwen3-0.6b")]
    shape: String,
    /// A model folder instead of a shape
    #[arg(long, conflicts_with = "shape")]
    model: Option<PathBuf>,
    /// Formats of the weights: q4, q8, bf16 (as stored)
    #[arg(long, value_delimiter = ',', default_value = "q4,q8,bf16")]
    weights: Vec<String>,
    /// CPU paths: scalar, avx2, avxvnni, avx512, amx, neon, dotprod, i8mm [default: the best one]
    #[arg(long, value_delimiter = ',')]
    cpu: Vec<String>,
    /// KV cache types: f16, f32, q8; those after the first are measured only in decoding
    #[arg(long, value_delimiter = ',', default_value = "f16,q8")]
    kv: Vec<String>,
    /// Image for the measurements `image` and `image_prefill`, of a shape with a tower
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Measure only these: load, prefill, decode, second_turn, gap, gap_p99, gap_max, image, image_prefill,
    /// resident, peak, dram_rate, matrix_rate
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs of each measurement; the median is shown
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Write the measurements to a file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show ratios to the measurements of an earlier run
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Run the kernels' own benchmarks instead
    #[arg(long)]
    kernels: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.kernels {
        return process::run(&mut process::cargo(&["bench", "--package", "lm-benches"]));
    }
    let before = match &args.compare {
        Some(path) => table::read(&fs::read_to_string(path).with_context(|| path.display().to_string())?)?,
        None => Vec::new(),
    };
    let folder = match &args.model {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => shape::checkpoint(&args.shape)?,
    };
    process::run(&mut process::cargo(&["build", "--release", "--package", "lm-cli"]))?;
    let mut json = args.json.as_ref().map(fs::File::create).transpose()?;
    let best = [String::new()];
    for cpu in if args.cpu.is_empty() { &best } else { &args.cpu[..] } {
        for weights in &args.weights {
            for (i, kv) in args.kv.iter().enumerate() {
                let mut lm = process::cargo(&[
                    "run",
                    "--quiet",
                    "--release",
                    "--package",
                    "lm-cli",
                    "--",
                    "bench",
                    "--json",
                ]);
                lm.arg(&folder).args(["--runs", &args.runs.to_string(), "--kv", kv]);
                if let Some(image) = &args.image {
                    lm.arg("--image").arg(std::env::current_dir()?.join(image));
                }
                if weights != "bf16" {
                    lm.args(["--quantize", weights]);
                }
                if !cpu.is_empty() {
                    lm.env("LM_CPU", cpu);
                }
                let only =
                    if i > 0 && args.only.is_empty() { "decode".to_owned() } else { args.only.join(",") };
                if !only.is_empty() {
                    lm.args(["--only", &only]);
                }
                let figures = table::read(&process::output(&mut lm)?)?;
                show(&figures, &before);
                if let Some(file) = &mut json {
                    figures.iter().try_for_each(|figure| writeln!(file, "{}", figure.line))?;
                }
            }
        }
    }
    Ok(())
}

fn show(figures: &[Figure], before: &[Figure]) {
    if let Some(first) = figures.first() {
        println!(
            "\n{} weights, {}, keys and values in {}",
            first.text("weights"),
            first.text("cpu"),
            first.text("kv")
        );
        println!("{}", table::heading(!before.is_empty()));
    }
    for figure in figures {
        println!("{}", figure.row(before));
    }
}
