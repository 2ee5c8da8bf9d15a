//! One turn of the agent, shown on the terminal as it proceeds.

use anyhow::{Result, bail};
use lm_conversation::{Overflow, TurnOptions};
use lm_session::{CancelHandle, FinishReason, Finished, Timing};
use lm_template::{Message, Role};
use lm_tools::{Agent, AgentEvent, AgentTurn};

use super::settings::Settings;
use super::tool_share;
use crate::counted::counted;
use crate::failure;
use crate::interrupt::{Interrupt, is_interrupt};
use crate::mcp::{Approver, AskedCall, ChatTools};
use crate::screen::Screen;
use crate::share::Share;

/// The conversation of a chat.
pub struct Turns {
    pub agent: Agent,
    pub interrupt: Interrupt,
    /// Number of replies that were regenerated: each gets another seed.
    pub regenerated: u64,
    pub tools: ChatTools,
    /// Share of the context for declarations of tools.
    pub tool_share: Share,
    /// Names of the declared tools, if they are not all.
    pub declared: Option<Vec<String>>,
    /// The user, who is asked about calls.
    pub approver: Approver,
}

/// Outcome of a turn without an error.
#[derive(Debug, PartialEq)]
pub enum Ended {
    /// The model's answer.
    Answered {
        /// Outcome of each of its replies.
        finished: Vec<Finished>,
    },
    /// Interrupted by Ctrl-C: the question and the beginning of the reply are in the history.
    Cancelled,
    /// Interrupted by Ctrl-C while a turn was run again: the history has its earlier reply.
    Restored,
    /// Interrupted by Ctrl-C before the text of an answer: nothing of the turn is in the history.
    TakenBack,
}

impl Turns {
    /// Number of messages of preface and history.
    pub fn messages(&self) -> usize {
        let conversation = self.agent.conversation();
        conversation.preface().messages.len() + conversation.history().len()
    }

    /// Text of the last message.
    pub fn last_text(&self) -> String {
        let history = self.agent.conversation().history();
        history.last().map(|last| last.content.text()).unwrap_or_default()
    }

    /// Returns true if the last message is a reply without text.
    pub fn is_last_reply_empty(&self) -> bool {
        let history = self.agent.conversation().history();
        history.last().is_some_and(|last| {
            last.role == Role::Assistant
                && last.tool_calls.is_empty()
                && last.content.text().trim().is_empty()
        })
    }

    /// Runs a turn to its answer. On an error the conversation has the calls that ran, or is unchanged if
    /// there are none.
    pub fn run(&mut self, question: Message, settings: &Settings, screen: &mut Screen) -> Result<Ended> {
        let before = self.agent.conversation().history();
        let kept = vec![question.clone()];
        match self.tools.refresh() {
            Ok(true) => {
                self.approver.forget();
                screen.note("(the tools of an MCP server have changed; /tools shows them)")?;
            }
            Ok(false) => {}
            Err(error) => {
                let error = failure::message(&error);
                screen
                    .note(&format!("(the tools of an MCP server have changed and are not used: {error})"))?;
            }
        }
        self.declare(&question, screen)?;
        let start: Start<'_> =
            &mut move |agent, options| agent.turn(question.clone()).options(options).start();
        self.stream(start, Record { before, kept, ..Record::default() }, settings, screen)
    }

    /// Chooses the tools of a turn; a note names them if they are others than in the last turn, and not all.
    fn declare(&mut self, question: &Message, screen: &mut Screen) -> Result<()> {
        let all = self.tools.all();
        let specs = all.specs();
        let names = tool_share::declared(self.tool_share, &specs, question, self.agent.conversation());
        self.agent.set_tools(all.select(names.iter().copied())?);
        let is_part = names.len() < specs.len();
        let declared: Option<Vec<String>> = is_part.then(|| names.into_iter().map(str::to_owned).collect());
        if let Some(names) = declared.as_ref().filter(|_| declared != self.declared) {
            screen.note(&tool_share::note(names, specs.len()))?;
        }
        self.declared = declared;
        Ok(())
    }

    /// Writes on in the last reply.
    pub fn go_on(&mut self, settings: &Settings, screen: &mut Screen) -> Result<Ended> {
        let mut before = self.agent.conversation().history();
        let mut record = Record::default();
        if let Some(reply) = before.pop() {
            record.text = reply.content.text();
            record.reasoning = reply.reasoning_content.unwrap_or_default();
        }
        self.stream(
            &mut |agent, options| agent.continue_reply(options),
            Record { before, ..record },
            settings,
            screen,
        )
    }

    fn stream(
        &mut self,
        start: Start<'_>,
        mut record: Record,
        settings: &Settings,
        screen: &mut Screen,
    ) -> Result<Ended> {
        let mut options = settings.options(self.regenerated)?;
        options.cancel = CancelHandle::new();
        let interrupt = self.interrupt.clone();
        let _guard = interrupt.during(options.cancel.clone());
        screen.wait();
        let turn = start(&mut self.agent, options).map_err(anyhow::Error::from);
        let ended = turn.and_then(|turn| show(turn, &mut record, screen, (&mut self.approver, &self.tools)));
        screen.end_line()?;
        match ended {
            Ok(finished) => Ok(Ended::Answered { finished }),
            Err(error) if is_interrupt(&error) => {
                let Record { before, kept, .. } = &mut record;
                let (mut history, turn) = (std::mem::take(before), std::mem::take(kept));
                let reply = record.interrupted();
                let ended = if reply.is_some() { Ended::Cancelled } else { Ended::TakenBack };
                history.extend(reply.into_iter().flat_map(|reply| [turn.clone(), reply].concat()));
                self.agent.conversation_mut().set_history(history);
                Ok(ended)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the last turn out of the history; returns its messages, the question first.
    pub fn undo(&mut self) -> Option<Vec<Message>> {
        let conversation = self.agent.conversation_mut();
        let mut history = conversation.history();
        let turn = history.split_off(history.iter().rposition(|message| message.role == Role::User)?);
        conversation.set_history(history);
        Some(turn)
    }

    /// Runs the last turn again, with another seed. On an error, and after Ctrl-C, the conversation is
    /// unchanged.
    pub fn regenerate(&mut self, settings: &Settings, screen: &mut Screen) -> Result<Ended> {
        let Some(turn) = self.undo() else { bail!("there is no turn to regenerate") };
        if settings.sampler.is_greedy() {
            screen.note("(greedy sampling gives the same reply again; /set temperature 1 samples)")?;
        }
        self.regenerated += 1;
        let before = self.agent.conversation().history();
        match self.run(turn[0].clone(), settings, screen) {
            Ok(Ended::Answered { finished }) => Ok(Ended::Answered { finished }),
            unanswered => {
                self.agent.conversation_mut().set_history([before, turn].concat());
                unanswered.map(|_| Ended::Restored)
            }
        }
    }
}

fn show(
    turn: AgentTurn,
    record: &mut Record,
    screen: &mut Screen,
    (approver, tools): (&mut Approver, &ChatTools),
) -> Result<Vec<Finished>> {
    for event in turn {
        let event = event?;
        record.push(&event);
        match event {
            AgentEvent::Text(text) => screen.text(&text)?,
            AgentEvent::Reasoning(text) => screen.reasoning(&text)?,
            AgentEvent::ToolCall(call) => screen.tool_call(&call)?,
            AgentEvent::Conversation(event) => screen.event(&event)?,
            AgentEvent::Approval(request) => {
                let server = tools.server_of(&request.call.name);
                approver.answer(&request, &AskedCall { server, has_siblings: record.calls() != 1 })?;
            }
            AgentEvent::ToolResult(step) => screen.tool_result(&step.result)?,
            AgentEvent::Finished(reply) => return Ok(reply.answered()?.finished),
            _ => {}
        }
    }
    bail!("the turn ended without its last event")
}

/// Starts a turn of an agent.
type Start<'s> = &'s mut dyn FnMut(&mut Agent, TurnOptions) -> lm_tools::Result<AgentTurn>;

/// Messages of a running turn, after the question.
#[derive(Default)]
struct Record {
    /// History before the turn.
    before: Vec<Message>,
    /// The question, if the turn has one.
    kept: Vec<Message>,
    messages: Vec<Message>,
    /// The reply that is being written.
    text: String,
    reasoning: String,
}

impl Record {
    fn push(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(text) => self.text += text,
            AgentEvent::Reasoning(text) => self.reasoning += text,
            AgentEvent::ReplyFinished(reply) => {
                self.messages.push(reply.message.clone());
                self.text.clear();
                self.reasoning.clear();
            }
            AgentEvent::ToolResult(step) => self.messages.push(step.result.clone()),
            _ => {}
        }
    }

    /// Number of calls of the last reply.
    fn calls(&self) -> usize {
        let last = self.messages.iter().rfind(|message| message.role == Role::Assistant);
        last.map_or(0, |reply| reply.tool_calls.len())
    }

    /// Returns messages that a conversation can continue: calls without all results are omitted, and the last
    /// message is the assistant's, with the reply so far. `None` if that reply has no text.
    fn interrupted(mut self) -> Option<Vec<Message>> {
        if let Some(last) = self.messages.iter().rposition(|message| message.role == Role::Assistant) {
            let results = self.messages.len() - last - 1;
            if self.messages[last].tool_calls.is_empty() {
                return Some(self.messages);
            }
            if results < self.messages[last].tool_calls.len() {
                self.text = self.messages[last].content.text();
                self.reasoning = self.messages[last].reasoning_content.take().unwrap_or_default();
                self.messages.truncate(last);
            }
        }
        if self.text.trim().is_empty() {
            return None;
        }
        let mut reply = Message::assistant(self.text);
        reply.reasoning_content = Some(self.reasoning).filter(|text| !text.is_empty());
        self.messages.push(reply);
        Some(self.messages)
    }
}

/// Note on a reply that was cut.
pub fn cut_note(finished: &Finished, overflow: Overflow) -> Option<&'static str> {
    match (&finished.reason, overflow) {
        (FinishReason::MaxOutputTokens, _) => {
            Some("(the reply was cut: it reached --max-tokens; /continue resumes it)")
        }
        (FinishReason::ContextFull, Overflow::SlidingWindow) => Some(
            "(the reply was cut: the context is full; /compact summarises the conversation, --context allows more)",
        ),
        (FinishReason::ContextFull, Overflow::Error | Overflow::DropOldest(_)) => Some(
            "(the reply was cut: the context is full; /compact summarises the conversation, --overflow sliding-window or --context allows more)",
        ),
        _ if finished.steered.is_some() => Some(
            "(the reply was cut: its tokens ran out, and the end is the grammar's; --max-tokens or --context allows more)",
        ),
        _ => None,
    }
}

/// Formats tokens, speed and seed of a turn on one line.
pub fn stats(finished: &[Finished]) -> String {
    let sum = |count: fn(&Finished) -> usize| finished.iter().map(count).sum::<usize>();
    let continued = sum(|reply| reply.usage.continued_tokens);
    let mut parts = vec![format!(
        "{}, {} of them cached",
        counted(sum(|reply| reply.usage.prompt_tokens), "prompt token"),
        sum(|reply| reply.usage.cached_tokens)
    )];
    let mut output =
        counted(sum(|reply| reply.usage.output_tokens).saturating_sub(continued), "output token");
    if continued > 0 {
        output += &format!(" after {continued} earlier ones");
    }
    let decode = Timing {
        decode: finished.iter().map(|reply| reply.timing.decode).sum(),
        decoded_tokens: sum(|reply| reply.timing.decoded_tokens),
        ..Timing::default()
    };
    if let Some(rate) = decode.decode_tokens_per_second() {
        output += &format!(", {rate:.1} a second");
    }
    parts.push(output);
    if let Some(ttft) = finished.first().and_then(|reply| reply.timing.ttft) {
        parts.push(format!("first after {:.0} ms", ttft.as_secs_f64() * 1e3));
    }
    parts.extend(masked(finished));
    let seed = finished.first().and_then(|reply| reply.seed);
    parts.push(seed.map_or("greedy".to_owned(), |seed| format!("seed {seed}")));
    format!("[{}]", parts.join("; "))
}

/// Effect of a grammar, where it excluded the model's most probable token.
fn masked(finished: &[Finished]) -> Option<String> {
    let masked = || finished.iter().filter_map(|reply| reply.masked);
    let (overruled, sampled) =
        masked().fold((0, 0), |sum, reply| (sum.0 + reply.overruled, sum.1 + reply.sampled));
    let first = masked().next()?.first;
    let share = format!("{:.0} % of the first", 100.0 * first);
    (overruled > 0).then(|| format!("the grammar overruled {overruled} of {sampled} tokens, {share}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_session::{Masked, Usage};
    use lm_template::{Map, ToolCall, Value};
    use std::time::Duration;

    fn record(messages: Vec<Message>, text: &str) -> Vec<(Role, String)> {
        let (text, reasoning) = (text.to_owned(), "Hm.".to_owned());
        let record = Record { messages, text, reasoning, ..Record::default() };
        let messages = record.interrupted().unwrap_or_default();
        messages.into_iter().map(|message| (message.role.clone(), message.content.text())).collect()
    }

    #[test]
    fn stats_count_the_new_tokens() {
        let finished = |usage, decoded_tokens| Finished {
            reason: FinishReason::EndToken,
            usage,
            timing: Timing {
                decode: Duration::from_secs(decoded_tokens as u64),
                decoded_tokens,
                ttft: Some(Duration::from_millis(4)),
                ..Timing::default()
            },
            seed: None,
            steered: None,
            masked: None,
        };
        let usage = Usage { prompt_tokens: 9, cached_tokens: 9, output_tokens: 14, ..Usage::default() };
        assert_eq!(
            stats(&[finished(usage, 13)]),
            "[9 prompt tokens, 9 of them cached; 14 output tokens, 1.0 a second; first after 4 ms; greedy]"
        );
        let continued = Usage { continued_tokens: 13, ..usage };
        assert_eq!(
            stats(&[finished(continued, 0)]),
            "[9 prompt tokens, 9 of them cached; 1 output token after 13 earlier ones; first after 4 ms; greedy]"
        );
    }

    #[test]
    fn stats_say_how_often_the_grammar_overruled_the_model() {
        let mut reply = Finished {
            reason: FinishReason::EndToken,
            usage: Usage::default(),
            timing: Timing::default(),
            seed: None,
            steered: None,
            masked: Some(Masked { sampled: 20, first: 0.984, overruled: 3, removed: 2.5, ended: 0 }),
        };
        assert!(
            stats(&[reply.clone()]).contains("; the grammar overruled 3 of 20 tokens, 98 % of the first; ")
        );
        reply.masked = Some(Masked { sampled: 20, ..Masked::default() });
        assert!(!stats(&[reply]).contains("grammar"));
    }

    #[test]
    fn interrupted_turn_ends_with_the_reply_so_far() {
        let call = || Message::tool_calls(vec![ToolCall::new("f", Map::new())]);
        let result = || Message::tool(None, "f", Value::String("1".to_owned()));
        let said = |text: &str| vec![(Role::Assistant, text.to_owned())];
        assert_eq!(record(vec![], "Once"), said("Once"));
        assert_eq!(record(vec![], ""), [], "reasoning alone is not a reply");
        assert_eq!(record(vec![call()], ""), [], "a call without its result is omitted");
        assert_eq!(record(vec![call(), result()], " "), []);
        let mut announced = call();
        announced.content = "Let me look.".into();
        assert_eq!(record(vec![announced], ""), said("Let me look."));
        let roles: Vec<_> = record(vec![call(), result()], "It").into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant]);
        assert_eq!(record(vec![Message::assistant("Done.")], ""), said("Done."));
    }
}
