//! `lm bench`: what a user of one model gets, beside what the machine allows.

mod figure;
mod limits;
mod memory;
mod runs;

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use lm_kernels::Isa;
use lm_model::PAGE_LEN;
use lm_session::Engine;

use crate::args::{ModelPath, RunArgs};
use crate::model;
use figure::{Figure, Metric, Samples};
use limits::Limits;

const EXAMPLES: &str = "\
Examples:
  lm bench
  lm bench ./Qwen3-0.6B --quantize q4
  lm bench ./Qwen3-0.6B --quantize q4 --only decode --decode 0,4096 --kv q8 --json

Every figure stands beside its limit: what it would be if the bytes that must be read came at the rate of a plain read of the memory,
or if all operations ran at the rate of the processor's products, both measured in the same run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Lengths of prompts whose prefill is measured
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_value = "128,512,2048", value_parser = at_least_one)]
    prefill: Vec<usize>,
    /// Lengths of contexts at which decoding is measured; 0 = empty
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_value = "0,512,4096")]
    decode: Vec<usize>,
    /// Numbers of sequences that run at the same time, each of 64 + 64 tokens
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8", value_parser = at_least_one)]
    sequences: Vec<usize>,
    /// Tokens of the context at which a second turn of 32 tokens comes
    #[arg(long, value_name = "TOKENS", default_value_t = 1000, value_parser = at_least_one)]
    turn: usize,
    /// Measure these alone
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    only: Vec<Metric>,
    /// Runs, of which the medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    runs: usize,
    /// Print a line of JSON for each figure
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of at least 1".to_owned())
}

impl Args {
    fn wants(&self, metric: Metric) -> bool {
        self.only.is_empty() || self.only.contains(&metric)
    }
}

pub fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures say nothing (`cargo run --release -- bench`)");
    }
    let bench = Bench::start(args)?;
    if !args.json {
        bench.print_model()?;
    }
    bench.run()
}

/// A loaded model, and what is known of it and the machine.
struct Bench<'a> {
    args: &'a Args,
    engine: Engine,
    limits: Limits,
    load: Samples,
    resident: Option<memory::Resident>,
}

impl<'a> Bench<'a> {
    /// Loads the model, and looks at the memory before anything else is done.
    fn start(args: &'a Args) -> Result<Self> {
        let file_read = limits::read_files(args.model.get())?;
        let started = Instant::now();
        let loaded = model::load(args.model.get(), &args.run.load.options()?)?;
        let mut load = Samples::from(vec![started.elapsed().as_secs_f64()]);
        let cache_bytes_per_token = loaded.model.cache_bytes_per_page() / PAGE_LEN;
        let engine = Engine::new(loaded, args.run.engine_settings())?;
        runs::decode(&engine, 0, 1)?;
        let resident = memory::resident();
        if args.wants(Metric::Load) {
            for _ in 1..args.runs {
                let started = Instant::now();
                drop(model::load(args.model.get(), &args.run.load.options()?)?);
                load.push(started.elapsed().as_secs_f64());
            }
        }
        let limits = Limits::measure(engine.model_info(), cache_bytes_per_token, file_read)?;
        Ok(Self { args, engine, limits, load, resident })
    }

    fn run(&self) -> Result<()> {
        let Args { prefill, decode, sequences, turn, runs, .. } = self.args;
        self.show(Metric::DramRate, 0, 1, &Samples::from(vec![self.limits.read_rate / 1e9]), None)?;
        self.show(Metric::MatrixRate, 0, 1, &Samples::from(vec![self.limits.product_rate / 1e12]), None)?;
        self.show(Metric::Load, 0, 1, &self.load, self.limits.file_read)?;
        if let Some(resident) = &self.resident {
            let limit = |allowance: f64| Some(self.limits.weight_bytes / 1e6 + allowance);
            self.show(Metric::Resident, 0, 1, &Samples::from(vec![resident.now / 1e6]), limit(150.0))?;
            self.show(Metric::Peak, 0, 1, &Samples::from(vec![resident.peak / 1e6]), limit(300.0))?;
        }
        for &tokens in prefill {
            if self.fits(Metric::Prefill, tokens) {
                let samples = runs::prefill(&self.engine, tokens, *runs)?;
                self.show(Metric::Prefill, tokens, 1, &samples, Some(self.limits.prefill(tokens)))?;
            }
        }
        for &context in decode {
            if self.fits(Metric::Decode, context + runs::OUTPUT) {
                let samples = runs::decode(&self.engine, context, *runs)?;
                self.show(Metric::Decode, context, 1, &samples, Some(self.limits.decode(context)))?;
            }
        }
        for &n in sequences {
            if self.fits(Metric::Decode, n * (runs::PROMPT + runs::OUTPUT)) {
                let samples = runs::batch(&self.engine, n, *runs)?;
                self.show(Metric::Decode, runs::PROMPT, n, &samples, Some(self.limits.batch(n)))?;
            }
        }
        if self.fits(Metric::SecondTurn, turn + runs::REPLY + runs::TURN) {
            let samples = runs::second_turn(&self.engine, *turn, *runs)?;
            self.show(Metric::SecondTurn, *turn, 1, &samples, Some(self.limits.second_turn(*turn)))?;
        }
        Ok(())
    }

    /// Whether a metric was asked for and its tokens have room; says so when they have not.
    fn fits(&self, metric: Metric, tokens: usize) -> bool {
        let room = self.engine.context_tokens();
        if self.args.wants(metric) && tokens > room {
            eprintln!("skipped: {metric} of {tokens} tokens: the context holds {room}");
        }
        self.args.wants(metric) && tokens <= room
    }

    fn show(
        &self,
        metric: Metric,
        context: usize,
        sequences: usize,
        samples: &Samples,
        limit: Option<f64>,
    ) -> Result<()> {
        if !self.args.wants(metric) {
            return Ok(());
        }
        let figure = Figure {
            metric,
            weights: self.engine.model_info().format.to_string(),
            cpu: Isa::current().to_string(),
            context,
            sequences,
            kv: self.args.run.load.kv.to_string(),
            value: samples.median(),
            unit: metric.unit(),
            limit,
            swing: samples.swing(),
        };
        let mut out = std::io::stdout().lock();
        if self.args.json {
            serde_json::to_writer(&mut out, &figure)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{figure}")?;
        }
        Ok(out.flush()?)
    }

    fn print_model(&self) -> Result<()> {
        let info = self.engine.model_info();
        let mut out = std::io::stdout().lock();
        let parameters = info.parameters as f64 / 1e6;
        let name = self.engine.name();
        let threads = lm_kernels::Pool::global().threads();
        writeln!(
            out,
            "{name}: {}, {parameters:.1} M parameters, {} on {}",
            info.architecture, info.format, info.device
        )?;
        writeln!(
            out,
            "{threads} threads, {} kernels, keys and values in {}, medians of {} runs",
            Isa::current(),
            self.args.run.load.kv,
            self.args.runs
        )?;
        if self.limits.decode_bytes < 64e6 {
            writeln!(
                out,
                "a model this small stays in the processor's caches: the memory is not what limits it"
            )?;
        }
        let heading = Figure::heading();
        let bold = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if bold {
            writeln!(out, "\x1b[1m{heading}\x1b[0m")?
        } else {
            writeln!(out, "{heading}")?
        }
        Ok(())
    }
}
