//! `lm bench --profile`: where the time of forward passes goes.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use lm_kernels::Pool;
use lm_kernels::host::profile::{self, Profile, Work};
use lm_session::{CancelHandle, Engine};
use serde::Serialize;
use serde_json::{Map, Value};

use super::figure::Metric;
use super::{Args, memory, runs};
use crate::args::usage;

/// Time outside of forward passes: the sampler and the engine.
const OUTSIDE: &str = "outside";

/// Means over the forward passes of some runs.
#[derive(Debug, Serialize)]
struct Line {
    /// Prefill or decode.
    profile: Metric,
    context: usize,
    /// Forward passes that were measured.
    passes: u64,
    milliseconds: f64,
    /// Milliseconds by kind of work; their sum is `milliseconds`.
    parts: Map<String, Value>,
    /// Parallel loops: a fork and a join of all threads each.
    loops: f64,
    /// Page faults; absent where the system does not count them.
    page_faults: Option<f64>,
}

/// Shows the profile of each length that was asked for and fits the context.
pub fn run(args: &Args, engine: &Engine) -> Result<()> {
    let mut shown = 0;
    for &tokens in &args.prefill {
        if args.wants(Metric::Prefill) && tokens <= engine.context_tokens() {
            show(args, &prefill(engine, tokens, args.runs)?, &mut shown)?;
        }
    }
    for &context in &args.decode {
        if args.wants(Metric::Decode) && context + runs::OUTPUT <= engine.context_tokens() {
            show(args, &decode(engine, context, args.runs)?, &mut shown)?;
        }
    }
    match shown {
        0 => Err(usage("nothing was measured: give `--prefill` or `--decode` lengths that fit the context")),
        _ => Ok(()),
    }
}

fn show(args: &Args, line: &Line, shown: &mut usize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(line)?)?,
        false if *shown == 0 => writeln!(out, "{}\n{line}", heading())?,
        false => writeln!(out, "{line}")?,
    }
    *shown += 1;
    Ok(out.flush()?)
}

/// Profile of prompts of `tokens` tokens, after one that is not counted.
fn prefill(engine: &Engine, tokens: usize, number: usize) -> Result<Line> {
    runs::prefill(engine, tokens)?;
    let measured = Counters::start();
    let mut elapsed = Duration::ZERO;
    for _ in 0..number {
        let started = Instant::now();
        runs::prefill(engine, tokens)?;
        elapsed += started.elapsed();
    }
    Ok(measured.line(Metric::Prefill, tokens, elapsed))
}

/// Profile of decode steps after `context` tokens, after some that are not counted.
fn decode(engine: &Engine, context: usize, number: usize) -> Result<Line> {
    let mut session = runs::context(engine, context)?;
    runs::decode(&mut session)?;
    let held = session.tokens();
    let measured = Counters::start();
    let mut elapsed = Duration::ZERO;
    for _ in 0..number {
        let started = Instant::now();
        runs::generate(&mut session)?;
        elapsed += started.elapsed();
        session.sync(&held, &CancelHandle::new())?;
    }
    Ok(measured.line(Metric::Decode, context, elapsed))
}

/// Counters when the measurement began.
struct Counters {
    loops: u64,
    page_faults: Option<u64>,
}

impl Counters {
    fn start() -> Self {
        profile::start();
        Self { loops: Pool::global().loops(), page_faults: memory::page_faults() }
    }

    /// Ends the measurement.
    fn line(self, run: Metric, context: usize, elapsed: Duration) -> Line {
        let (loops, faults, profile) = (Pool::global().loops(), memory::page_faults(), profile::stop());
        let passes = profile.spans(Work::Between);
        let mean = |total: f64| total / passes.max(1) as f64;
        let milliseconds = |time: Duration| mean(time.as_secs_f64() * 1e3);
        Line {
            profile: run,
            context,
            passes,
            milliseconds: milliseconds(elapsed),
            parts: parts(&profile, elapsed, milliseconds),
            loops: mean((loops - self.loops) as f64),
            page_faults: faults.zip(self.page_faults).map(|(now, before)| mean((now - before) as f64)),
        }
    }
}

/// Kinds of work by name, and the rest.
fn parts(profile: &Profile, elapsed: Duration, value: impl Fn(Duration) -> f64) -> Map<String, Value> {
    let passes: Duration = Work::ALL.iter().map(|&work| profile.time(work)).sum();
    let kinds = Work::ALL.iter().map(|&work| (name(work), profile.time(work)));
    let outside = [(OUTSIDE, elapsed.saturating_sub(passes))];
    kinds.chain(outside).map(|(name, time)| (name.to_owned(), value(time).into())).collect()
}

fn name(work: Work) -> &'static str {
    match work {
        Work::Linear => "linear",
        Work::Rounding => "rounding",
        Work::Attention => "attention",
        Work::CacheWrite => "kv_write",
        Work::Rows => "rows",
        Work::States => "states",
        Work::Between => "between",
    }
}

fn heading() -> String {
    let names = Work::ALL.iter().map(|&work| name(work)).chain([OUTSIDE]);
    let names: String = names.map(|name| format!(" {name:>10}")).collect();
    format!("{:<8} {:>7} {:>7} {:>10}{names} {:>7} {:>7}", "", "context", "passes", "ms", "loops", "faults")
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, context, passes, milliseconds, .. } = self;
        write!(f, "{profile:<8} {context:>7} {passes:>7} {milliseconds:>10.3}")?;
        for part in self.parts.values() {
            write!(f, " {:>8.1} %", part.as_f64().unwrap_or(0.0) / milliseconds * 100.0)?;
        }
        write!(f, " {:>7.1}", self.loops)?;
        match self.page_faults {
            Some(faults) => write!(f, " {faults:>7.1}"),
            None => write!(f, " {:>7}", "-"),
        }
    }
}
