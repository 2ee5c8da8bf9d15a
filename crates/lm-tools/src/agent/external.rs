//! External calls: handed over to the caller at the end of a turn, and answered by the input of the next one.

use super::driver::{Driver, First};
use crate::error::{Error, Result};
use crate::steps::{AgentStep, CallOutcome, StopReason};
use lm_template::{Map, Message, Role, ToolCall, Value};

/// A call that the caller runs, after the decision on it.
#[derive(Clone)]
pub(super) struct ExternalCall {
    /// The model's call.
    pub call: ToolCall,
    /// The arguments that the caller gets.
    pub arguments: Map<String, Value>,
    pub outcome: CallOutcome,
    pub asked: bool,
}

impl ExternalCall {
    /// The call as the caller gets it.
    pub fn handed_over(&self) -> ToolCall {
        let mut call = self.call.clone();
        call.arguments.clone_from(&self.arguments);
        call
    }
}

/// The last reply of a history, whose calls got their results from the input of a turn.
pub(super) struct Answered {
    /// Index of the reply in the history.
    pub reply: usize,
    /// Number of its round.
    pub round: usize,
    pub calls: Vec<ToolCall>,
    /// Results, in the order of the calls.
    pub results: Vec<Message>,
    /// Numbers of the calls that the input answers.
    pub given: Vec<usize>,
    /// The input after the results.
    pub rest: Vec<Message>,
}

impl Answered {
    /// Reads the input of a turn; `None` if it has no results and no call waits for one.
    pub fn read(history: &[Message], input: &[Message]) -> Result<Option<Self>> {
        let given = input.iter().take_while(|message| message.role == Role::Tool).count();
        let (given, rest) = input.split_at(given);
        let (reply, calls, mut results) = last_round(history);
        let waiting: Vec<usize> = (0..calls.len()).filter(|&number| results[number].is_none()).collect();
        for result in given {
            let number = waiting
                .iter()
                .find(|&&number| results[number].is_none() && calls[number].id == result.tool_call_id);
            let Some(&number) = number else { return Err(unknown(result, calls, &waiting)) };
            let mut result = result.clone();
            result.name = Some(calls[number].name.clone());
            results[number] = Some(result);
        }
        let missing = calls.iter().zip(&results).filter(|(_, result)| result.is_none());
        let missing: Vec<ToolCall> = missing.map(|(call, _)| call.clone()).collect();
        if !missing.is_empty() {
            return Err(Error::MissingResults { calls: missing });
        }
        Ok((!given.is_empty()).then(|| Self {
            reply,
            round: earlier_rounds(&history[..reply]),
            calls: calls.to_vec(),
            results: results.into_iter().flatten().collect(),
            given: waiting,
            rest: rest.to_vec(),
        }))
    }

    /// Steps of the calls that the input answers; `decided` are the calls that this process has handed over.
    fn steps(&self, decided: &[ExternalCall]) -> Vec<AgentStep> {
        let step = |&number: &usize| {
            let (call, result) = (self.calls[number].clone(), self.results[number].clone());
            let decided = decided.iter().find(|decided| decided.call == call);
            AgentStep {
                outcome: decided.map_or(CallOutcome::External, |decided| decided.outcome.clone()),
                asked: decided.is_some_and(|decided| decided.asked),
                ..AgentStep::new(self.round, call, result)
            }
        };
        self.given.iter().map(step).collect()
    }
}

/// Calls of a history that wait for external results.
pub(super) fn waiting_calls(history: &[Message]) -> impl Iterator<Item = &ToolCall> {
    let (_, calls, results) = last_round(history);
    calls.iter().zip(results).filter(|(_, result)| result.is_none()).map(|(call, _)| call)
}

/// Index of the last message that is not a result, its calls, and their results by the numbers of the calls.
fn last_round(history: &[Message]) -> (usize, &[ToolCall], Vec<Option<Message>>) {
    let reply = history.iter().rposition(|message| message.role != Role::Tool).unwrap_or_default();
    let calls = history.get(reply).map_or(&[][..], |reply| &reply.tool_calls);
    (reply, calls, known(calls, history.get(reply + 1..).unwrap_or_default()))
}

/// Results of a history by the numbers of their calls. A result without a call id, as in a foreign history,
/// belongs to the first call without one.
fn known(calls: &[ToolCall], messages: &[Message]) -> Vec<Option<Message>> {
    let mut results: Vec<Option<Message>> = vec![None; calls.len()];
    for message in messages {
        let mut open = (0..calls.len()).filter(|&number| results[number].is_none());
        let named = open.clone().find(|&number| calls[number].id == message.tool_call_id);
        if let Some(number) = named.or_else(|| open.next()) {
            results[number] = Some(message.clone());
        }
    }
    results
}

fn unknown(result: &Message, calls: &[ToolCall], waiting: &[usize]) -> Error {
    let waiting = waiting.iter().map(|&number| calls[number].clone()).collect();
    Error::UnknownResult { id: result.tool_call_id.clone(), waiting }
}

/// Number of rounds since the user's last message.
fn earlier_rounds(history: &[Message]) -> usize {
    let of_turn = history.iter().rev().take_while(|message| message.role != Role::User);
    of_turn.filter(|message| !message.tool_calls.is_empty()).count()
}

impl Driver {
    /// Starts the first reply to an input, which answers the calls that wait for results; without one the
    /// last reply continues. `decided` are the calls that the last turn has handed over.
    pub fn first(&mut self, input: Option<Vec<Message>>, decided: &[ExternalCall]) -> Result<First> {
        self.begin_round();
        let history = self.state.lock().history();
        if let Some(input) = &input
            && let Some(answered) = Answered::read(&history, input)?
        {
            return self.resume(answered, decided);
        }
        let options = self.reply_options();
        let turn = self.state.lock().first_reply(input, options)?;
        Ok(First::Reply(turn))
    }

    fn resume(&self, mut answered: Answered, decided: &[ExternalCall]) -> Result<First> {
        let after = answered.steps(decided).into_iter().map(|step| self.after(step));
        let (steps, stops): (Vec<AgentStep>, Vec<Option<StopReason>>) = after.unzip();
        for (&number, step) in answered.given.iter().zip(&steps) {
            answered.results[number] = step.result.clone();
        }
        let rest = std::mem::take(&mut answered.rest);
        let history = self.state.lock().resume(answered, steps);
        let first = match stops.into_iter().flatten().next() {
            Some(stop) => First::Stopped(stop),
            None => {
                let options = self.reply_options();
                First::Reply(self.state.lock().reply_to(rest, options, history)?)
            }
        };
        self.state.lock().record_all();
        self.state.record();
        Ok(first)
    }
}
