//! Gaps between the tokens of streams while other requests arrive.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lm_conversation::{
    Conversation, ConversationConfig, Engine, Preface, SamplerParams, SessionConfig, ThinkingConfig,
    ToolChoice, ToolSpec, TurnOptions,
};
use lm_session::{GenerateParams, SessionEvent};
use lm_template::PromptTemplate;
use serde_json::json;

use super::runs;

/// Number of concurrent streams.
pub const STREAMS: usize = 8;
/// Tokens of the arriving prompt.
pub const PROMPT: usize = 2000;
/// Tokens that each stream generates before the arrival.
const WARM_UP: usize = 8;
/// Maximum output tokens of the arriving request with a tool call.
const CALL: usize = 192;
/// Template for models without one.
const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Runs [`STREAMS`] streams while `arrive` runs; returns the gaps between their tokens meanwhile, in
/// milliseconds, sorted.
pub fn during(engine: &Engine, arrive: impl FnOnce() -> Result<()>) -> Result<Vec<f64>> {
    let (stop, warm) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let stream = || scope.spawn(|| token_times(engine, &stop, &warm));
        let streams: Vec<_> = (0..STREAMS).map(|_| stream()).collect();
        while warm.load(Ordering::Acquire) < STREAMS && streams.iter().all(|stream| !stream.is_finished()) {
            thread::sleep(Duration::from_millis(1));
        }
        let from = Instant::now();
        let arrived = arrive();
        let to = Instant::now();
        stop.store(true, Ordering::Release);
        let mut gaps = Vec::new();
        for stream in streams {
            let times = stream.join().map_err(|_| anyhow!("a stream's thread panicked"))??;
            gaps.extend(gaps_between(&times, from, to));
        }
        arrived?;
        gaps.sort_by(f64::total_cmp);
        Ok(gaps)
    })
}

/// Times of the tokens of a stream, until `stop` is set.
fn token_times(engine: &Engine, stop: &AtomicBool, warm: &AtomicUsize) -> Result<Vec<Instant>> {
    let mut session = runs::open(engine, usize::MAX)?;
    let mut times = Vec::new();
    for event in session.submit(&runs::prompt(engine, runs::PROMPT), GenerateParams::default())? {
        if let SessionEvent::Token { .. } = event? {
            times.push(Instant::now());
            if times.len() == WARM_UP {
                warm.fetch_add(1, Ordering::Release);
            }
        }
        if stop.load(Ordering::Acquire) {
            break;
        }
    }
    Ok(times)
}

/// Gaps that overlap the time between `from` and `to`, in milliseconds; the last one is cut at `to`.
fn gaps_between(times: &[Instant], from: Instant, to: Instant) -> Vec<f64> {
    let ends = times.iter().copied().skip(1).chain([to]);
    let gaps = std::iter::zip(times.iter().copied(), ends);
    let inside = gaps.filter(|&(start, end)| end > from && start < to);
    inside.map(|(start, end)| (end.min(to) - start).as_secs_f64() * 1e3).collect()
}

/// Prefills a prompt of [`PROMPT`] tokens.
pub fn prompt_arrives(engine: &Engine) -> Result<()> {
    runs::prefill(engine, PROMPT).map(drop)
}

/// Runs a request with eight tools, a required call and thinking, whose grammar has not been compiled before.
pub fn call_arrives(engine: &Engine) -> Result<()> {
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let tools = (0..8).map(|tool| {
        ToolSpec::from_json(json!({"name": format!("search_{number}_{tool}"), "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "maxLength": 40},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                "order": {"enum": ["newest", "oldest", "best"]},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
            },
            "required": ["query"],
        }}))
    });
    let tools = tools.collect::<std::result::Result<Vec<_>, _>>()?;
    let sampler = SamplerParams { temperature: 1.0, top_p: 0.95, ..SamplerParams::default() };
    let config = ConversationConfig {
        preface: Preface { tools, ..Preface::default() },
        session: SessionConfig { sampler, ..SessionConfig::default() },
        template: engine.chat_template().is_none().then(|| PromptTemplate::new(TEMPLATE)).transpose()?,
        processor: lm_processors::by_name("hermes").map(Into::into),
        ..ConversationConfig::default()
    };
    let turn = TurnOptions {
        tool_choice: ToolChoice::Required,
        thinking: ThinkingConfig { max_tokens: Some(32), ..ThinkingConfig::default() },
        max_output_tokens: Some(CALL),
        ..TurnOptions::default()
    };
    let reply = Conversation::new(engine, config)?.send_with("Find the newest notes.", turn)?;
    reply.tool_calls().first().context("the reply has no call")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_include_overlapping_and_silent_streams() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let times = [at(0), at(10), at(30), at(40), at(90)];
        assert_eq!(gaps_between(&times, at(15), at(50)), [20.0, 10.0, 10.0]);
        assert_eq!(gaps_between(&times[..1], at(5), at(105)), [105.0]);
    }
}
