//! Timed runs, each through the engine and the sampler as for a user.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use lm_session::{
    CancelHandle, Engine, GenerateParams, SamplerParams, Session, SessionConfig, SessionEvent, Timing,
    TokenId,
};

use super::figure::{Sample, median};

/// Decoded tokens of a run.
pub const OUTPUT: usize = 64;
/// Prompt tokens of each concurrent sequence.
pub const PROMPT: usize = 64;
/// Reply tokens before a second turn.
pub const REPLY: usize = 16;
/// New tokens of the second turn, and those of the first prompt after the load.
pub const TURN: usize = 32;

/// Prefill rate of a prompt, in tokens per second.
pub fn prefill(engine: &Engine, tokens: usize) -> Result<f64> {
    let stats = open(engine, 1)?.prefill(&prompt(engine, tokens))?;
    Ok(tokens as f64 / stats.elapsed.as_secs_f64())
}

/// Creates a session with a context to decode after.
pub fn context(engine: &Engine, tokens: usize) -> Result<Session> {
    let mut session = open(engine, OUTPUT + 1)?;
    session.prefill(&prompt(engine, tokens.max(1)))?;
    Ok(session)
}

/// Decode rate after a context, in tokens per second; the session is restored afterwards.
pub fn decode(session: &mut Session) -> Result<f64> {
    let held = session.tokens();
    let timing = generate(session)?;
    session.sync(&held, &CancelHandle::new())?;
    timing.decode_tokens_per_second().context("the model gave one token only")
}

/// Tokens per second that `n` concurrent sequences generate together, from the start of the first one to the
/// end of the last one.
pub fn batch(engine: &Engine, n: usize) -> Result<f64> {
    let start = Barrier::new(n + 1);
    thread::scope(|scope| {
        let run_one = || -> Result<()> {
            let (session, prompt) = (open(engine, OUTPUT), prompt(engine, PROMPT));
            start.wait();
            let mut session = session?;
            session.prefill(&prompt)?;
            generate(&mut session).map(drop)
        };
        let running: Vec<_> = (0..n).map(|_| scope.spawn(run_one)).collect();
        start.wait();
        let started = Instant::now();
        for one in running {
            one.join().map_err(|_| anyhow::anyhow!("a sequence's thread panicked"))??;
        }
        Ok((n * OUTPUT) as f64 / started.elapsed().as_secs_f64())
    })
}

/// Creates a session after a first turn of `tokens` tokens and its reply.
pub fn first_turn(engine: &Engine, tokens: usize) -> Result<Session> {
    let mut session = open(engine, REPLY)?;
    session.prefill(&prompt(engine, tokens))?;
    generate(&mut session)?;
    Ok(session)
}

/// Milliseconds to the first token of a second turn, given as the whole history and the new tokens. The
/// session is restored afterwards.
pub fn second_turn(session: &mut Session) -> Result<f64> {
    let history = session.tokens();
    let turn = [&history[..], &prompt(session.engine(), TURN)].concat();
    session.sync(&turn, &CancelHandle::new())?;
    let timing = generate(session)?;
    session.sync(&history, &CancelHandle::new())?;
    Ok(timing.ttft.context("no token was sampled")?.as_secs_f64() * 1e3)
}

/// Milliseconds to the first token of the first prompt of an engine, with the median of five later prompts
/// as the limit.
pub fn first_token(engine: &Engine) -> Result<Sample> {
    let run = || -> Result<f64> {
        let mut session = open(engine, 1)?;
        let started = Instant::now();
        session.prefill(&prompt(engine, TURN))?;
        generate(&mut session)?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    let value = run()?;
    let later = (0..5).map(|_| run()).collect::<Result<Vec<_>>>()?;
    Ok(Sample { value, limit: Some(median(later.into_iter())) })
}

/// Opens a session that samples greedily and never ends before its limit.
pub fn open(engine: &Engine, max_output_tokens: usize) -> Result<Session> {
    let forbidden = engine.tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    Ok(engine.session(SessionConfig {
        sampler: SamplerParams { logit_bias: forbidden, ..SamplerParams::default() },
        max_output_tokens: Some(max_output_tokens),
        adapter: crate::model::adapter(engine),
        ..SessionConfig::default()
    })?)
}

/// Generates [`OUTPUT`] tokens, or as many as the session allows.
pub fn generate(session: &mut Session) -> Result<Timing> {
    for event in session.generate(GenerateParams::default()) {
        if let SessionEvent::Finished(finished) = event? {
            return Ok(finished.timing);
        }
    }
    bail!("the generation ended without its last event")
}

/// Ids spread over the vocabulary, different ones for each call, so that no prompt is found in the prefix
/// cache. Their values do not change the work.
pub fn prompt(engine: &Engine, tokens: usize) -> Vec<TokenId> {
    static PROMPTS: AtomicUsize = AtomicUsize::new(0);
    let first = PROMPTS.fetch_add(1, Ordering::Relaxed) * 104_729;
    let vocab_size = engine.tokenizer().vocab_size().max(1);
    (0..tokens).map(|i| ((first + i * 7919) % vocab_size) as TokenId).collect()
}
