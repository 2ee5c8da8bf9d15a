//! Limits of a turn.

#[cfg(doc)]
use crate::steps::CallOutcome;
use crate::steps::StopReason;
use lm_template::{Map, ToolCall, Value};
use std::time::Duration;

/// Limits of a turn. A turn that reaches one ends with a [`StopReason`] and keeps its finished work.
///
/// The toolset sets the limits of single calls: [`CallLimits`](crate::CallLimits).
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use serde_json::json;
/// use lm_tools::{Agent, AgentLimits, CallOutcome, StopReason, demo};
///
/// # let again = || ScriptedReply::call("get_weather", json!({"location": "Paris"}));
/// # let engine = scripted_engine([again(), again(), again()]);
/// // A model that makes the same call again and again.
/// let limits = AgentLimits { max_identical_calls: Some(2), ..AgentLimits::default() };
/// let mut agent = Agent::builder(&engine, demo()).limits(limits).build()?;
/// let reply = agent.run("How is the weather in Paris?")?;
/// assert!(matches!(reply.stop, StopReason::RepeatedCall { max_identical_calls: 2, .. }));
/// let outcomes: Vec<_> = reply.steps.iter().map(|step| &step.outcome).collect();
/// assert_eq!(outcomes, [&CallOutcome::Ran, &CallOutcome::Ran, &CallOutcome::NotRun]);
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum number of rounds: replies whose calls run, not counting the answer. Default 8; with 0 the
    /// model may only answer.
    pub max_rounds: usize,
    /// Maximum number of calls. Default `None`.
    pub max_calls: Option<usize>,
    /// Maximum number of calls of one tool with the same arguments. Default `None`:
    /// [`on_repeat`](Self::on_repeat) applies.
    pub max_identical_calls: Option<usize>,
    /// Maximum number of tokens of all replies together. Default `None`.
    pub max_output_tokens: Option<usize>,
    /// Time limit of the turn, waiting for approvals included. Default `None`.
    pub timeout: Option<Duration>,
    /// Time limit of each reply of the model with its calls, waiting for approvals included. At its end the
    /// turn ends, too. Default `None`.
    pub round_timeout: Option<Duration>,
    /// End of a turn at a limit of rounds or calls. Default: [`AtLimit::Stop`].
    pub at_limit: AtLimit,
    /// Handling of a call that the reply before has already made. Default: [`OnRepeat::Answer`].
    pub on_repeat: OnRepeat,
}

/// End of a turn at a limit of rounds or calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtLimit {
    /// The turn ends: calls beyond the limit have a result that says so, and
    /// [`AgentReply::stop`](super::AgentReply::stop) names the limit.
    #[default]
    Stop,
    /// The model has one more reply, which cannot call tools: it answers with what it has.
    Answer,
}

/// Handling of a call that repeats one of the reply before it: the same tool with the same arguments.
///
/// Small models often make a call again instead of reading its result, until a limit ends the turn without an
/// answer.
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use serde_json::json;
/// use lm_tools::{Agent, CallOutcome, demo};
///
/// # let again = || ScriptedReply::call("get_weather", json!({"location": "Paris"}));
/// # let engine = scripted_engine([again(), again(), ScriptedReply::text("It is sunny.")]);
/// // A model that makes a call twice.
/// let reply = Agent::builder(&engine, demo()).build()?.run("How is the weather in Paris?")?;
/// let outcomes: Vec<_> = reply.steps.iter().map(|step| &step.outcome).collect();
/// assert_eq!(outcomes, [&CallOutcome::Ran, &CallOutcome::Repeated]);
/// assert_eq!(reply.text(), "It is sunny.");
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRepeat {
    /// It does not run: it has the earlier result again, with a request to answer
    /// ([`CallOutcome::Repeated`]). A call that failed may be tried once more. If a reply has no other calls,
    /// the next one cannot call tools.
    #[default]
    Answer,
    /// It runs: for tools that are called until their result changes, such as the state of a job.
    Run,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_rounds: 8,
            max_calls: None,
            max_identical_calls: None,
            max_output_tokens: None,
            timeout: None,
            round_timeout: None,
            at_limit: AtLimit::Stop,
            on_repeat: OnRepeat::Answer,
        }
    }
}

/// Counts of a running turn.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Number of started rounds.
    pub rounds: usize,
    pub output_tokens: usize,
    /// Calls that were admitted.
    calls: Vec<(String, Map<String, Value>)>,
}

impl Counts {
    /// Counts a call of the current round, or returns the limit that it exceeds.
    pub fn admit(&mut self, limits: &AgentLimits, call: &ToolCall) -> Option<StopReason> {
        let same = |(name, arguments): &&(_, _)| *name == call.name && *arguments == call.arguments;
        let identical = self.calls.iter().filter(same).count();
        if self.rounds > limits.max_rounds {
            return Some(StopReason::RoundLimit { max_rounds: limits.max_rounds });
        }
        if let Some(max_calls) = limits.max_calls.filter(|&max| self.calls.len() >= max) {
            return Some(StopReason::CallLimit { max_calls });
        }
        if let Some(max_identical_calls) = limits.max_identical_calls.filter(|&max| identical >= max) {
            return Some(StopReason::RepeatedCall { name: call.name.clone(), max_identical_calls });
        }
        self.calls.push((call.name.clone(), call.arguments.clone()));
        None
    }

    /// Remaining tokens for further replies.
    pub fn tokens_left(&self, limits: &AgentLimits) -> Option<usize> {
        limits.max_output_tokens.map(|max| max.saturating_sub(self.output_tokens))
    }
}
