//! One turn of the agent, shown on the terminal as it proceeds.

use std::io::Write;

use anyhow::{Result, bail};
use lm_conversation::TurnOptions;
use lm_session::Finished;
use lm_tools::{Agent, AgentEvent};

use crate::interrupt::Interrupt;
use crate::screen::Screen;

/// State shared by all turns.
pub struct Turns {
    pub agent: Agent,
    pub options: TurnOptions,
    pub interrupt: Interrupt,
}

/// Outcome of a turn without an error.
pub enum Ended {
    /// The model's answer, with the outcome of each of its replies.
    Answered(Vec<Finished>),
    /// Cancelled by Ctrl-C.
    Cancelled,
}

impl Turns {
    /// Runs a turn to its answer. On an error or a cancellation, the conversation is unchanged.
    pub fn run<W: Write>(&mut self, text: &str, screen: &mut Screen<W>) -> Result<Ended> {
        let cancel = self.agent.cancel_handle();
        cancel.reset();
        let interrupt = self.interrupt.clone();
        let _guard = interrupt.during(cancel);
        let ended = self.show(text, screen);
        screen.end_line()?;
        match ended {
            Ok(finished) => Ok(Ended::Answered(finished)),
            Err(error) if matches!(error.downcast_ref(), Some(lm_tools::Error::Cancelled)) => {
                Ok(Ended::Cancelled)
            }
            Err(error) => Err(error),
        }
    }

    fn show<W: Write>(&mut self, text: &str, screen: &mut Screen<W>) -> Result<Vec<Finished>> {
        for event in self.agent.stream_with(text, self.options.clone())? {
            match event? {
                AgentEvent::Conversation(event) => screen.event(&event)?,
                AgentEvent::ToolResult(message) => screen.tool_result(&message)?,
                AgentEvent::Finished(reply) => return Ok(reply.finished),
            }
        }
        bail!("the turn ended without its last event")
    }
}

/// Formats tokens and speed of a turn on one line.
pub fn stats(finished: &[Finished]) -> String {
    let sum = |count: fn(&Finished) -> usize| finished.iter().map(count).sum::<usize>();
    let output = sum(|reply| reply.usage.output_tokens);
    let decoded = sum(|reply| reply.timing.decoded_tokens);
    let decode = finished.iter().map(|reply| reply.timing.decode.as_secs_f64()).sum::<f64>();
    let ttft = finished.first().and_then(|reply| reply.timing.ttft).unwrap_or_default();
    format!(
        "[{} prompt tokens, {} of them cached; {output} output tokens, {:.1} a second; first after {:.0} ms]",
        sum(|reply| reply.usage.prompt_tokens),
        sum(|reply| reply.usage.cached_tokens),
        if decode > 0.0 { decoded as f64 / decode } else { 0.0 },
        ttft.as_secs_f64() * 1e3,
    )
}
