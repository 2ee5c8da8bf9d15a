//! `lm bench`: a model's performance, compared with the machine's limits.

mod figure;
mod gaps;
mod image;
mod limits;
mod memory;
mod profile;
mod runs;

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::iter;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use lm_kernels::{Isa, PrefetchPlan};
use lm_model::LoadedModel;
use lm_session::{Engine, EngineSettings, PrefixCache, Speculation};

use crate::args::{
    ModelPath, RunArgs, check_context,
    numbers::{at_least_one, at_least_zero},
    usage,
};
use crate::locate::locate;
use crate::{model, progress};
use figure::{Figure, Metric, Sample, median, swing};
use image::ImageBench;
use limits::{CacheCosts, Costs, Machine, Rates};

const EXAMPLES: &str = "\
Examples:
  lm bench
  lm bench ./Qwen3-0.6B --quantize q4      # several minutes
  lm bench ./Qwen3-0.6B --quantize q4 --only decode --decode 0 --sequences 1 --runs 1
  lm bench ./Qwen3-0.6B --quantize q4 --only decode --decode 0,4096 --kv q8 --json
  lm bench ./SmolVLM-256M --only image,image_prefill --image cat.png
  lm bench ./Qwen3-0.6B --quantize q4 --profile --prefill 512 --decode 0,4096

Every figure has its limit beside it: the figure at the memory's read rate for the bytes that must be read, or at the processor's \
rates of products for all operations, whichever takes longer. The rates are measured before and after each run. A share is \
value / limit, for times and memory limit / value: 100 % is at the limit, more is better than it. The swing is the range of the runs \
relative to their median.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Prompt lengths for the prefill measurement
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_value = "128,512,2048", value_parser = at_least_one, allow_negative_numbers = true)]
    prefill: Vec<usize>,
    /// Context lengths for the decode measurement; 0 is an empty context
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_value = "0,512,4096", value_parser = at_least_zero, allow_negative_numbers = true)]
    decode: Vec<usize>,
    /// Numbers of concurrent sequences, each of 64 prompt and 64 output tokens
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8", value_parser = at_least_one, allow_negative_numbers = true)]
    sequences: Vec<usize>,
    /// Context length before a second turn of 32 tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 1000, value_parser = at_least_one, allow_negative_numbers = true)]
    turn: usize,
    /// Image for the measurements of images, which are omitted without it
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Run only these measurements
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    only: Vec<Metric>,
    /// Number of runs; medians are reported
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one, allow_negative_numbers = true)]
    runs: usize,
    /// Instead of figures, show the time of a pass by kind of work, its parallel loops and page faults, for
    /// `--prefill` and `--decode`
    #[arg(long, conflicts_with_all = ["sequences", "turn"])]
    profile: bool,
    /// Print figures as JSON Lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    fn wants(&self, metric: Metric) -> bool {
        self.only.is_empty() || self.only.contains(&metric)
    }
}

pub fn run(args: &Args) -> Result<()> {
    args.run.refuse_generation_options("bench")?;
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures say nothing (`cargo run --release -- bench`)");
    }
    if args.image.is_none() && args.only.iter().any(|metric| metric.is_of_image()) {
        return Err(usage("an image is measured with --image FILE"));
    }
    if let Some(context) = args.run.context {
        check_context(context, model::folder(args.model.get())?.config()?.max_position_embeddings)?;
    }
    let file_read = limits::read_files(model::stored(args.model.get()).map(locate).transpose()?)?;
    let (loaded, seconds) = load(args)?;
    let layout = loaded.model.new_cache(1)?.layout().clone();
    let image = args.image.as_ref().map(|file| ImageBench::open(file, &loaded)).transpose()?;
    // A figure is that of one token a step, whatever the random prompts repeat, of an image that was not
    // encoded before, and of cache pages that have been written before: the warm-up run maps their memory,
    // and sessions that ended leave them to the next one.
    let settings = EngineSettings {
        speculation: Speculation::OFF,
        media_cache_bytes: 0,
        prefix_cache: PrefixCache::Session,
        ..args.run.engine_settings()
    };
    let engine = Engine::new(loaded, settings)?;
    let first_token = runs::first_token(&engine)?;
    runs::decode(&mut runs::context(&engine, 0)?)?;
    if args.profile {
        return profile::run(args, &engine);
    }
    let resident = memory::resident(); // Before the buffers of the bandwidth measurement are allocated.
    let kv = args.run.load.kv.unwrap_or_default();
    let info = engine.model_info();
    let machine = Machine::new(info.formats.first().copied().unwrap_or(info.format), kv)?;
    let cache = CacheCosts::new(layout, kv);
    let costs = Costs::of(engine.model_info(), cache);
    let progress = progress::status_line();
    let bench = Bench { args, engine, machine, costs, num_shown: Cell::new(0), progress };
    if !args.json {
        bench.print_model()?;
    }
    bench.start(seconds, file_read, resident)?;
    bench.show(Metric::FirstToken, (runs::TURN, 1), &[first_token])?;
    bench.run()?;
    image.map_or(Ok(()), |image| bench.image(&image))?;
    bench.progress.finish_and_clear();
    if bench.num_shown.get() == 0 {
        let room = bench.engine.context_tokens();
        return Err(usage(format!(
            "nothing was measured: the context holds {room} tokens; give shorter lengths"
        )));
    }
    Ok(())
}

/// Loads the model; also returns the seconds that it took.
fn load(args: &Args) -> Result<(LoadedModel, f64)> {
    let started = Instant::now();
    let loaded = model::load(args.model.get(), &args.run.load.options()?, &args.run.load)?;
    Ok((loaded, started.elapsed().as_secs_f64()))
}

/// A loaded model with its costs, and the machine.
struct Bench<'a> {
    args: &'a Args,
    engine: Engine,
    machine: Machine,
    costs: Costs,
    /// Number of printed figures.
    num_shown: Cell<usize>,
    /// Current measurement, on standard error.
    progress: ProgressBar,
}

/// Case of a figure, besides the model: context and sequences.
type Case = (usize, usize);

impl Bench<'_> {
    /// Shows the figures that are known after the load.
    fn start(&self, seconds: f64, file_read: Option<f64>, resident: Option<memory::Resident>) -> Result<()> {
        let rates = self.machine.rates().best(self.machine.rates());
        self.show(Metric::DramRate, (0, 1), &[Sample::unlimited(rates.read / 1e9)])?;
        self.show(Metric::MatrixRate, (0, 1), &[Sample::unlimited(rates.product / 1e12)])?;
        if self.args.wants(Metric::Load) {
            let again = (1..self.args.runs).map(|number| {
                self.note_run(Metric::Load, (0, 1), number + 1);
                load(self.args).map(|(_, seconds)| seconds)
            });
            let seconds: Vec<f64> = iter::once(Ok(seconds)).chain(again).collect::<Result<_>>()?;
            let samples: Vec<_> = seconds.iter().map(|&value| Sample { value, limit: file_read }).collect();
            self.show(Metric::Load, (0, 1), &samples)?;
        }
        if let Some(resident) = resident {
            let sample = |bytes: f64, allowance: f64| Sample {
                value: bytes / 1e6,
                limit: Some(self.costs.weight_bytes / 1e6 + allowance),
            };
            self.show(Metric::Resident, (0, 1), &[sample(resident.now, 150.0)])?;
            self.show(Metric::Peak, (0, 1), &[sample(resident.peak, 300.0)])?;
        }
        Ok(())
    }

    fn run(&self) -> Result<()> {
        let Args { prefill, decode, sequences, turn, .. } = self.args;
        let (engine, costs) = (&self.engine, &self.costs);
        for &tokens in prefill {
            if self.fits(Metric::Prefill, tokens) {
                let limit = |rates| Some(costs.prefill(rates, tokens));
                self.measure(Metric::Prefill, (tokens, 1), limit, || runs::prefill(engine, tokens))?;
            }
        }
        for &context in decode {
            if self.fits(Metric::Decode, context + runs::OUTPUT) {
                let mut session = runs::context(engine, context)?;
                let limit = |rates| Some(costs.decode(rates, context));
                self.measure(Metric::Decode, (context, 1), limit, || runs::decode(&mut session))?;
            }
        }
        for &n in sequences {
            if self.fits(Metric::Decode, n * (runs::PROMPT + runs::OUTPUT)) {
                let limit = |rates| Some(costs.batch(rates, n));
                self.measure(Metric::Decode, (runs::PROMPT, n), limit, || runs::batch(engine, n))?;
            }
        }
        if self.fits(Metric::SecondTurn, turn + runs::REPLY + runs::TURN) {
            let mut session = runs::first_turn(engine, *turn)?;
            let limit = |rates| Some(costs.second_turn(rates, *turn));
            self.measure(Metric::SecondTurn, (*turn, 1), limit, || runs::second_turn(&mut session))?;
        }
        if [Metric::Gap, Metric::GapP99, Metric::GapMax].iter().any(|&gap| self.args.wants(gap)) {
            self.gaps(gaps::PROMPT, || gaps::prompt_arrives(engine))?;
            self.gaps(0, || gaps::call_arrives(engine))?;
        }
        Ok(())
    }

    /// Measures an image: its encoding, and a prompt with it. Limits are not shown: they depend on the
    /// encoder.
    fn image(&self, image: &ImageBench) -> Result<()> {
        let media = image.media(&self.engine)?;
        if self.args.wants(Metric::Image) {
            self.measure(Metric::Image, (media.rows(), 1), |_| None, || image.encode())?;
        }
        let tokens = image::prompt(&self.engine, &media)?.len();
        if self.fits(Metric::ImagePrefill, tokens) {
            let run = || image::prefill(&self.engine, &media);
            self.measure(Metric::ImagePrefill, (tokens, 1), |_| None, run)?;
        }
        Ok(())
    }

    /// Measures the gaps between the tokens of streams while `arrive` runs.
    fn gaps(&self, context: usize, arrive: impl Fn() -> Result<()>) -> Result<()> {
        if gaps::PROMPT + 1 > self.engine.context_tokens() {
            let room = self.engine.context_tokens();
            self.progress.suspend(|| eprintln!("skipped: gaps: the context holds {room} tokens"));
            return Ok(());
        }
        let budget = self.args.run.engine_settings().step_budget.as_secs_f64() * 1e3;
        let runs = (1..=self.args.runs).map(|number| {
            self.note_run(Metric::Gap, (context, gaps::STREAMS), number);
            gaps::during(&self.engine, &arrive)
        });
        let runs = runs.collect::<Result<Vec<_>>>()?;
        for (metric, part) in [(Metric::Gap, 0.5), (Metric::GapP99, 0.99), (Metric::GapMax, 1.0)] {
            let value = |gaps: &Vec<f64>| gaps[((gaps.len() - 1) as f64 * part).round() as usize];
            let samples = runs.iter().map(|gaps| Sample { value: value(gaps), limit: Some(budget) });
            self.show(metric, (context, gaps::STREAMS), &samples.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Runs once to warm up, then `--runs` times, and measures the machine's rates before and after each run.
    fn measure(
        &self,
        metric: Metric,
        case: Case,
        limit: impl Fn(Rates) -> Option<f64>,
        mut run: impl FnMut() -> Result<f64>,
    ) -> Result<()> {
        self.note_run(metric, case, 0);
        run().context("the warm-up run failed")?;
        let mut before = self.machine.rates();
        let mut samples = Vec::with_capacity(self.args.runs);
        for number in 1..=self.args.runs {
            self.note_run(metric, case, number);
            let value = run()?;
            let after = self.machine.rates();
            samples.push(Sample { value, limit: limit(before.best(after)) });
            before = after;
        }
        self.show(metric, case, &samples)
    }

    /// Shows the current run of a measurement; 0 is the warm-up.
    fn note_run(&self, metric: Metric, (context, sequences): Case, number: usize) {
        let case = match (context, sequences) {
            (0, 1) => String::new(),
            (tokens, 1) => format!(" {tokens}"),
            (tokens, sequences) => format!(" {tokens}, {sequences} sequences"),
        };
        let run = match number {
            0 => "warm-up".to_owned(),
            number => format!("run {number} of {}", self.args.runs),
        };
        self.progress.set_message(format!("measuring {metric}{case}: {run}"));
    }

    /// Returns true if a metric was asked for and its tokens fit the context; prints a line if they do not
    /// fit.
    fn fits(&self, metric: Metric, tokens: usize) -> bool {
        let room = self.engine.context_tokens();
        if self.args.wants(metric) && tokens > room {
            let skipped = format!(
                "skipped: {metric}: it takes {tokens} tokens, the new ones included, and the context holds {room}"
            );
            self.progress.suspend(|| eprintln!("{skipped}"));
        }
        self.args.wants(metric) && tokens <= room
    }

    fn show(&self, metric: Metric, (context, sequences): Case, samples: &[Sample]) -> Result<()> {
        if !self.args.wants(metric) {
            return Ok(());
        }
        self.num_shown.update(|shown| shown + 1);
        let of_all = |of_one: fn(Metric, &Sample) -> Option<f64>| {
            let values: Option<Vec<f64>> = samples.iter().map(|sample| of_one(metric, sample)).collect();
            values.map(|values| median(values.into_iter()))
        };
        let figure = Figure {
            metric,
            weights: self.engine.model_info().format_names(),
            cpu: Isa::current().to_string(),
            context,
            sequences,
            kv: self.args.run.load.kv.unwrap_or_default().to_string(),
            value: median(samples.iter().map(|sample| sample.value)),
            unit: metric.unit(),
            limit: of_all(|_, sample| sample.limit),
            share: of_all(Metric::share),
            swing: swing(samples),
        };
        let line = if self.args.json { serde_json::to_string(&figure)? } else { figure.to_string() };
        self.progress.suspend(|| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}").and_then(|()| out.flush())
        })?;
        Ok(())
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
            info.architecture,
            info.format_names(),
            info.device
        )?;
        writeln!(
            out,
            "{threads} thread{}, {} kernels, {} prefetches, keys and values in {}, {}",
            if threads == 1 { "" } else { "s" },
            Isa::current(),
            PrefetchPlan::current(),
            self.args.run.load.kv.unwrap_or_default(),
            match self.args.runs {
                1 => "one run".to_owned(),
                runs => format!("medians of {runs} runs"),
            }
        )?;
        if self.costs.decode_bytes < 64e6 {
            writeln!(
                out,
                "a model this small stays in the processor's caches: the memory does not limit it, and shares of decode say little"
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
