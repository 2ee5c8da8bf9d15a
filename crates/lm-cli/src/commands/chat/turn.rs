//! One turn on the terminal's own thread: the model's replies, the calls between them, and a way back.
//!
//! `lm_tools::Agent` does the same with the conversation on another thread. Here tools may ask the user, on the same
//! terminal that shows the reply, so everything stays in one order on one thread.

use std::io::Write;

use anyhow::{Result, bail};
use lm_conversation::{Conversation, ConversationEvent, Reply, TurnOptions};
use lm_session::Finished;
use lm_template::Message;
use lm_tools::Toolset;

use crate::interrupt::Interrupt;
use crate::screen::Screen;

/// What turns need.
pub struct Turns {
    pub conversation: Conversation,
    pub tools: Toolset,
    pub max_rounds: usize,
    pub interrupt: Interrupt,
}

/// How a turn that did not fail ended.
pub enum Ended {
    /// With the model's answer; how each of its replies ended.
    Answered(Vec<Finished>),
    /// By Ctrl-C.
    Cancelled,
}

impl Turns {
    /// Runs a turn to its answer. When it fails or is cancelled, the conversation is as before.
    pub fn run<W: Write>(&mut self, text: &str, screen: &mut Screen<W>) -> Result<Ended> {
        let cancel = self.conversation.cancel_handle();
        cancel.reset();
        let interrupt = self.interrupt.clone();
        let _guard = interrupt.during(cancel.clone());
        let before = self.conversation.history().len();
        let result = self.rounds(vec![Message::user(text)], screen);
        screen.end_line()?;
        if let Ok(finished) = result {
            return Ok(Ended::Answered(finished));
        }
        let history = self.conversation.history()[..before].to_vec();
        self.conversation.set_history(history);
        if cancel.is_cancelled() { Ok(Ended::Cancelled) } else { result.map(Ended::Answered) }
    }

    fn rounds<W: Write>(
        &mut self,
        mut messages: Vec<Message>,
        screen: &mut Screen<W>,
    ) -> Result<Vec<Finished>> {
        let mut finished = Vec::new();
        loop {
            let reply = self.reply(messages, screen)?;
            finished.push(reply.finish);
            let calls = reply.message.tool_calls;
            if calls.is_empty() {
                return Ok(finished);
            }
            if finished.len() > self.max_rounds {
                bail!("the model still calls tools after {} rounds (see --max-rounds)", self.max_rounds);
            }
            messages = Vec::with_capacity(calls.len());
            for call in &calls {
                let result = self.tools.call(call);
                if self.conversation.cancel_handle().is_cancelled() {
                    bail!("cancelled");
                }
                screen.tool_result(&result)?;
                messages.push(result);
            }
        }
    }

    /// One reply of the model, shown as it comes.
    fn reply<W: Write>(&mut self, messages: Vec<Message>, screen: &mut Screen<W>) -> Result<Reply> {
        for event in self.conversation.stream(messages, TurnOptions::default())? {
            match event? {
                ConversationEvent::Text(text) => screen.text(&text)?,
                ConversationEvent::Reasoning(text) => screen.reasoning(&text)?,
                ConversationEvent::ToolCall(call) => screen.tool_call(&call)?,
                ConversationEvent::Finished(reply) => return Ok(reply),
                _ => {}
            }
        }
        bail!("the reply ended without its last event")
    }
}

/// Tokens and speed of a turn on one line.
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
