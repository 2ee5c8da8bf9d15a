//! Metrics of replies, of any API.

use std::time::{Duration, Instant};

use lm_api::{ApiError, ConversationEvent, Reply};
use lm_session::PrefillProgress;

use super::Metrics;

/// Interval of the log's lines about a prompt that is run.
const PREFILL_INTERVAL: Duration = Duration::from_secs(5);

/// Observer of the events of one request.
#[derive(Debug)]
pub(crate) struct ReplyObserver {
    metrics: Metrics,
    model: String,
    began: Instant,
    /// Time of the last line about the prompt, or of the request.
    logged: Instant,
    has_output: bool,
    /// Unfinished choices.
    unfinished: usize,
}

impl ReplyObserver {
    /// Observes a request for this number of choices, which arrived at `began`.
    pub fn new(metrics: &Metrics, model: &str, choices: usize, began: Instant) -> Self {
        let (metrics, model) = (metrics.clone(), model.to_owned());
        Self { metrics, model, began, logged: began, has_output: false, unfinished: choices }
    }

    /// Records an event of any choice, or the error that ends all.
    pub fn observe(&mut self, event: Result<&ConversationEvent, &ApiError>) {
        match event {
            Ok(ConversationEvent::Finished(reply)) => self.finish(reply),
            Ok(event) if is_output(event) && !self.has_output => {
                self.has_output = true;
                let elapsed = self.began.elapsed().as_secs_f64();
                self.metrics.first_token.with_label_values(&[&self.model]).observe(elapsed);
            }
            Ok(ConversationEvent::Prefill(progress)) => self.log(progress),
            Ok(_) => {}
            Err(error) => self.fail(error.status),
        }
    }

    /// Logs the progress of a prompt that takes long.
    fn log(&mut self, progress: &PrefillProgress) {
        if self.logged.elapsed() < PREFILL_INTERVAL {
            return;
        }
        self.logged = Instant::now();
        tracing::info!(
            model = %self.model,
            cached = progress.cached_tokens,
            run = progress.prefilled_tokens,
            prompt = progress.prompt_tokens,
            seconds = self.began.elapsed().as_secs(),
            "the prompt is being run"
        );
    }

    fn finish(&mut self, reply: &Reply) {
        self.unfinished = self.unfinished.saturating_sub(1);
        let (usage, timing) = (reply.finish.usage, reply.finish.timing);
        for (counter, tokens) in [
            (&self.metrics.prompt_tokens, usage.prompt_tokens),
            (&self.metrics.cached_tokens, usage.cached_tokens),
            (&self.metrics.generated_tokens, usage.output_tokens),
        ] {
            counter.with_label_values(&[&self.model]).inc_by(tokens as u64);
        }
        if let Some(rate) = timing.decode_tokens_per_second() {
            self.metrics.inter_token.with_label_values(&[&self.model]).observe(rate.recip());
        }
    }

    fn fail(&mut self, status: u16) {
        self.unfinished = 0;
        self.metrics.failed_replies.with_label_values(&[&self.model, &status.to_string()]).inc();
    }
}

impl Drop for ReplyObserver {
    fn drop(&mut self) {
        if self.unfinished > 0 {
            self.fail(499);
        }
        self.metrics.duration.with_label_values(&[&self.model]).observe(self.began.elapsed().as_secs_f64());
    }
}

fn is_output(event: &ConversationEvent) -> bool {
    matches!(
        event,
        ConversationEvent::Text(_)
            | ConversationEvent::Reasoning(_)
            | ConversationEvent::Channel { .. }
            | ConversationEvent::ToolCallStarted { .. }
            | ConversationEvent::ToolCall(_)
    )
}
