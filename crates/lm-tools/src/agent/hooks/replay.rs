//! Replay of recorded steps.

use super::{CallRequest, Decision, Hook};
use crate::steps::AgentStep;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Recorded steps in place of tools: each call has the result of its step, and nothing runs.
///
/// The calls must be those of the record, round by round: otherwise the turn ends with [`Decision::Stop`].
/// Further calls end it, too. Calls that the caller ran have their recorded results as well, and do not end
/// the turn. It decides on every call, so it must be the first hook.
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use lm_tools::{Agent, CallOutcome, Replay, ToolSpec, Toolset};
/// # use serde_json::json;
/// # let script = || [ScriptedReply::call("roll", json!({})), ScriptedReply::text("It is a 4.")];
/// # let spec = || ToolSpec::new("roll", "Rolls a die.", json!({"type": "object", "properties": {}}));
/// let tools = Toolset::new().with_fn(spec(), |_| Ok(4.into()))?;
/// let recorded = Agent::builder(&scripted_engine(script()), tools).build()?.run("Roll.")?;
/// let file = serde_json::to_string(&recorded.steps)?;
///
/// let tools = Toolset::new().with_fn(spec(), |_| unreachable!("nothing runs"))?;
/// let replay = Replay::new(serde_json::from_str::<Vec<_>>(&file)?);
/// let again = Agent::builder(&scripted_engine(script()), tools).hook(replay).build()?.run("Roll.")?;
/// assert_eq!(again.steps[0].outcome, CallOutcome::Answered);
/// assert_eq!(again.steps[0].result, recorded.steps[0].result);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay {
    steps: Mutex<VecDeque<AgentStep>>,
}

impl Replay {
    /// Creates a replay of these steps.
    pub fn new(steps: impl IntoIterator<Item = AgentStep>) -> Self {
        Self { steps: Mutex::new(steps.into_iter().collect()) }
    }

    /// Number of unused steps.
    pub fn remaining(&self) -> usize {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Hook for Replay {
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let call = request.call;
        let Some(step) = steps.front() else {
            return Decision::Stop(format!(
                "the record has no further call, the model calls `{}`",
                call.name
            ));
        };
        // External results are recorded after the others of their round.
        let mut of_round = steps.iter().take_while(|other| other.round == step.round);
        let is_it =
            |step: &AgentStep| (&step.call.name, &step.call.arguments) == (&call.name, &call.arguments);
        let Some(recorded) = of_round.position(is_it) else {
            let text = |name: &str, arguments| format!("{name}({})", serde_json::Value::Object(arguments));
            return Decision::Stop(format!(
                "the record has the call {}, the model calls {}",
                text(&step.call.name, step.call.arguments.clone()),
                text(&call.name, call.arguments.clone()),
            ));
        };
        let step = steps.remove(recorded);
        let result = step.map(|step| step.result.to_json());
        let content = result.and_then(|mut result| result.get_mut("content").map(serde_json::Value::take));
        Decision::Answer(content.unwrap_or_default())
    }
}
