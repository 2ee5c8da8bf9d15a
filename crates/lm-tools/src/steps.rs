//! Calls of a turn of an agent with their results, and reasons for the end of a turn, as data.

use crate::tool_error::ToolErrorKind;
use lm_template::{Map, Message, ToolCall, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A tool call and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStep {
    /// Number of the round, from 0: the calls of one reply are one round. It continues in a turn that starts
    /// with the results of external calls.
    pub round: usize,
    /// The model's call.
    pub call: ToolCall,
    /// Handling of the call.
    pub outcome: CallOutcome,
    /// True if the reader of the turn was asked ([`Decision::Ask`](crate::Decision::Ask)): the outcome is its
    /// answer, or a denial if there was none.
    #[serde(default)]
    pub asked: bool,
    /// The tool message with the result.
    pub result: Message,
    /// Kind of the call's error; `None` if it succeeded.
    pub error: Option<ToolErrorKind>,
    /// Number of attempts; 0 if the tool was not run.
    pub attempts: u32,
    /// Milliseconds from the start of the call to its result; 0 for a call that did not run, or that the
    /// caller ran.
    pub elapsed_ms: u64,
}

impl AgentStep {
    /// Creates the step of a call that ran in a custom loop; `round` is the number of the model's reply.
    pub fn new(round: usize, call: ToolCall, result: Message) -> Self {
        Self {
            round,
            call,
            outcome: CallOutcome::Ran,
            asked: false,
            result,
            error: None,
            attempts: 1,
            elapsed_ms: 0,
        }
    }

    /// The arguments passed to the tool, or that would have been.
    pub fn arguments(&self) -> &Map<String, Value> {
        match &self.outcome {
            CallOutcome::Edited { arguments } => arguments,
            _ => &self.call.arguments,
        }
    }
}

/// Messages of steps: for each round the assistant's with the calls, and one for each result.
pub(crate) fn messages_of(steps: &[AgentStep]) -> Vec<Message> {
    let round = |steps: &[AgentStep]| {
        let calls = Message::tool_calls(steps.iter().map(|step| step.call.clone()).collect());
        [vec![calls], steps.iter().map(|step| step.result.clone()).collect()].concat()
    };
    steps.chunk_by(|one, next| one.round == next.round).flat_map(round).collect()
}

/// Handling of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// The toolset handled the call. Its result may be an error: of an unknown tool, of invalid arguments, of
    /// the tool.
    Ran,
    /// As [`Ran`](Self::Ran), with arguments changed by a hook or an approval.
    Edited {
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A hook or an approval refused it.
    Denied,
    /// A hook provided the result in place of the tool.
    Answered,
    /// The caller ran it and provided the result ([`StopReason::ExternalCalls`]). With changed arguments it
    /// is [`Edited`](Self::Edited).
    External,
    /// It repeats a call of the reply before, and has that call's result again
    /// ([`OnRepeat::Answer`](crate::OnRepeat::Answer)).
    Repeated,
    /// The turn ended before it started.
    NotRun,
    /// The turn ended before its result: it may have taken effect.
    Abandoned,
}

/// Reason for the end of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model answered.
    Answered,
    /// The model still called tools after the last round.
    RoundLimit {
        /// [`AgentLimits::max_rounds`](crate::AgentLimits::max_rounds).
        max_rounds: usize,
    },
    /// The model called more tools than allowed.
    CallLimit {
        /// [`AgentLimits::max_calls`](crate::AgentLimits::max_calls).
        max_calls: usize,
    },
    /// The model repeated a call too often.
    RepeatedCall {
        /// The tool.
        name: String,
        /// [`AgentLimits::max_identical_calls`](crate::AgentLimits::max_identical_calls).
        max_identical_calls: usize,
    },
    /// The replies have as many tokens as allowed.
    TokenLimit {
        /// [`AgentLimits::max_output_tokens`](crate::AgentLimits::max_output_tokens).
        max_output_tokens: usize,
    },
    /// The reply reached a token limit or the end of the context inside a call, which was not run.
    CallCutOff {
        /// The tool, if the model had named it.
        name: Option<String>,
    },
    /// [`AgentLimits::timeout`](crate::AgentLimits::timeout), or the deadline of the turn's options, has
    /// passed.
    TimeLimit,
    /// [`AgentLimits::round_timeout`](crate::AgentLimits::round_timeout) has passed.
    RoundTimeLimit,
    /// The calls and their results leave no room in the context for another reply.
    ContextFull {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens of the context.
        context_tokens: usize,
    },
    /// The model calls tools that the caller runs
    /// ([`Toolset::with_external`](crate::Toolset::with_external)). The other calls of the reply have their
    /// results. The input of the next turn begins with a tool message for each of these calls, in any order;
    /// the history may be saved and restored before. Limits restart in that turn.
    ExternalCalls {
        /// The calls, in order, with their arguments after the hooks.
        calls: Vec<ToolCall>,
    },
    /// A hook ended the turn.
    Hook {
        /// The hook's text.
        message: String,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => write!(f, "the model answered"),
            Self::RoundLimit { max_rounds } => write!(f, "no answer after {max_rounds} rounds of tool calls"),
            Self::CallLimit { max_calls } => write!(f, "no answer after {max_calls} tool calls"),
            Self::RepeatedCall { name, max_identical_calls } => {
                write!(f, "no answer after {max_identical_calls} identical calls of `{name}`")
            }
            Self::TokenLimit { max_output_tokens } => {
                write!(f, "no answer within {max_output_tokens} output tokens")
            }
            Self::CallCutOff { name: Some(name) } => {
                write!(f, "no answer: a call of `{name}` was cut off by the token limit and not run")
            }
            Self::CallCutOff { name: None } => {
                write!(f, "no answer: a tool call was cut off by the token limit and not run")
            }
            Self::TimeLimit => write!(f, "no answer within the time limit"),
            Self::RoundTimeLimit => write!(f, "no answer: a round exceeded its time limit"),
            Self::ContextFull { prompt_tokens, context_tokens } => {
                write!(
                    f,
                    "no answer: the prompt has {prompt_tokens} tokens, the context holds {context_tokens}"
                )
            }
            Self::ExternalCalls { calls } => {
                write!(f, "no answer before the results of the caller's tools: {}", names(calls))
            }
            Self::Hook { message } => write!(f, "the turn was stopped: {message}"),
        }
    }
}

/// Names and ids of calls, for messages.
pub(crate) fn names(calls: &[ToolCall]) -> String {
    let name = |call: &ToolCall| match &call.id {
        Some(id) => format!("{} ({id})", call.name),
        None => call.name.clone(),
    };
    calls.iter().map(name).collect::<Vec<_>>().join(", ")
}
