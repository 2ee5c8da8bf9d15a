//! `lm bench`: prefill and decode of one sequence, beside the rate at which this machine reads memory.

use std::io::Write;

use anyhow::{Context, Result};
use lm_kernels::{Pool, host};
use lm_model::PAGE_LEN;
use lm_session::{Engine, GenerateParams, SamplerParams, SessionConfig, SessionEvent, Timing, TokenId};
use serde_json::json;

use crate::args::{ModelPath, RunArgs};
use crate::model;

const EXAMPLES: &str = "\
Examples:
  lm bench
  lm bench ./Qwen3-0.6B --quantize q4 --prompt 512 --output 128 --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Tokens of the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 512, value_parser = at_least_one)]
    prompt: usize,
    /// Tokens to decode after it
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = at_least_one)]
    output: usize,
    /// Runs, of which the medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    runs: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// What is read to measure the memory: far more than the last cache of common machines.
const COLD_BYTES: usize = 512 << 20;

/// What was measured; rates are medians.
struct Report {
    prefill_tokens_per_second: f64,
    decode_tokens_per_second: f64,
    read_bytes_per_second: f64,
    weight_bytes: u64,
    cache_bytes: u64,
}

impl Report {
    /// Bytes that a decode step has to read: all weights, and the cache at the middle of the decode.
    fn bytes_per_token(&self) -> u64 {
        self.weight_bytes + self.cache_bytes
    }

    /// The decode's bytes a second as a part of the memory's, in per cent.
    fn percent_of_read_rate(&self) -> f64 {
        self.decode_tokens_per_second * self.bytes_per_token() as f64 / self.read_bytes_per_second * 100.0
    }
}

pub fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures say nothing (`cargo run --release -- bench`)");
    }
    let loaded = model::load(args.model.get(), &args.run)?;
    let cache_bytes_per_token = loaded.model.cache_bytes_per_page() / PAGE_LEN;
    let engine = Engine::new(loaded, args.run.engine_settings())?;
    let mut runs = Vec::with_capacity(args.runs);
    run_once(&engine, args).context("the warm-up run failed")?;
    for _ in 0..args.runs {
        runs.push(run_once(&engine, args)?);
    }
    let cold = vec![1_u64; COLD_BYTES / size_of::<u64>()];
    let rate = |rate: fn(&Timing) -> Option<f64>| median(runs.iter().filter_map(rate).collect());
    let report = Report {
        prefill_tokens_per_second: rate(Timing::prefill_tokens_per_second),
        decode_tokens_per_second: rate(Timing::decode_tokens_per_second),
        read_bytes_per_second: host::limits::read_rate(Pool::global(), &cold),
        weight_bytes: engine.model_info().weight_bytes,
        cache_bytes: (cache_bytes_per_token * (args.prompt + args.output / 2)) as u64,
    };
    print(&engine, args, &report)
}

/// One prompt of made-up tokens and the tokens after it; the end tokens are forbidden.
fn run_once(engine: &Engine, args: &Args) -> Result<Timing> {
    let forbidden = engine.tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    let config = SessionConfig {
        sampler: SamplerParams { logit_bias: forbidden, ..SamplerParams::default() },
        max_output_tokens: Some(args.output),
        ..SessionConfig::default()
    };
    let mut session = engine.session(config)?;
    session.prefill(&prompt(engine, args.prompt))?;
    for event in session.generate(GenerateParams::default()) {
        if let SessionEvent::Finished(finished) = event? {
            return Ok(finished.timing);
        }
    }
    anyhow::bail!("the generation ended without its last event")
}

/// Ids spread over the vocabulary; which ones they are does not change the work.
fn prompt(engine: &Engine, tokens: usize) -> Vec<TokenId> {
    let vocab_size = engine.tokenizer().vocab_size().max(1);
    (0..tokens).map(|i| (i * 7919 % vocab_size) as TokenId).collect()
}

/// The middle value; of an even number the upper one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn print(engine: &Engine, args: &Args, report: &Report) -> Result<()> {
    let info = engine.model_info();
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = json!({
            "model": engine.name(),
            "architecture": info.architecture,
            "parameters": info.parameters,
            "format": info.format.to_string(),
            "device": info.device.to_string(),
            "prompt_tokens": args.prompt,
            "output_tokens": args.output,
            "runs": args.runs,
            "prefill_tokens_per_second": report.prefill_tokens_per_second,
            "decode_tokens_per_second": report.decode_tokens_per_second,
            "weight_bytes": report.weight_bytes,
            "bytes_per_token": report.bytes_per_token(),
            "memory_read_bytes_per_second": report.read_bytes_per_second,
            "percent_of_memory_read_rate": report.percent_of_read_rate(),
        });
        return Ok(writeln!(out, "{report}")?);
    }
    let mb = |bytes: f64| bytes / 1e6;
    writeln!(
        out,
        "{}: {}, {:.1} M parameters, {} on {}",
        engine.name(),
        info.architecture,
        mb(info.parameters as f64),
        info.format,
        info.device
    )?;
    writeln!(out, "medians of {} runs, one sequence", args.runs)?;
    writeln!(out, "prefill {:>6} tokens  {:>10.1} tokens/s", args.prompt, report.prefill_tokens_per_second)?;
    writeln!(out, "decode  {:>6} tokens  {:>10.1} tokens/s", args.output, report.decode_tokens_per_second)?;
    writeln!(
        out,
        "read per token        {:>10.2} MB (weights {:.2}, cache {:.2})",
        mb(report.bytes_per_token() as f64),
        mb(report.weight_bytes as f64),
        mb(report.cache_bytes as f64)
    )?;
    writeln!(out, "memory read rate      {:>10.1} GB/s", report.read_bytes_per_second / 1e9)?;
    writeln!(out, "decode reads at       {:>10.1} % of it", report.percent_of_read_rate())?;
    if report.bytes_per_token() < COLD_BYTES as u64 / 8 {
        writeln!(out, "(a model this small stays in the CPU's caches: the memory is not what limits it)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 4.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn decode_is_set_against_all_bytes_it_reads() {
        let report = Report {
            prefill_tokens_per_second: 1.0,
            decode_tokens_per_second: 10.0,
            read_bytes_per_second: 2000.0,
            weight_bytes: 90,
            cache_bytes: 10,
        };
        assert_eq!((report.bytes_per_token(), report.percent_of_read_rate()), (100, 50.0));
    }
}
