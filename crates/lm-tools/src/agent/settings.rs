//! Settings of an agent's turns.

use super::{AgentLimits, Hook};
use crate::steps::AgentStep;
use lm_conversation::ToolChoice;
use std::fmt;
use std::sync::Arc;

/// Settings of an agent's turns, set for the agent by [`AgentBuilder`](super::AgentBuilder), and for one turn
/// by [`AgentTurnBuilder::settings`](super::AgentTurnBuilder::settings).
#[derive(Clone, Default)]
pub struct AgentSettings {
    /// Name of the agent in traces. Default `None`.
    pub name: Option<String>,
    /// Limits of a turn.
    pub limits: AgentLimits,
    /// Tool choice of each reply of a turn.
    pub tool_choices: ToolChoices,
    /// Hooks, in decision order. Default: none; every call runs.
    pub hooks: Vec<Arc<dyn Hook>>,
}

impl fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSettings")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .field("tool_choices", &self.tool_choices)
            .field("hooks", &self.hooks.len())
            .finish()
    }
}

/// Function that chooses for a reply: its number in the turn, from 0, and the steps so far.
type Choose = dyn Fn(usize, &[AgentStep]) -> ToolChoice + Send + Sync;

/// Tool choice of each reply of a turn.
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use serde_json::json;
/// use lm_tools::{Agent, ToolChoice, ToolChoices, demo};
///
/// # let call = ScriptedReply::call("get_weather", json!({"location": "Paris"}));
/// # let engine = scripted_engine([call, ScriptedReply::text("It is sunny.")]);
/// // The weather first, then an answer.
/// let choices = ToolChoices::Sequence(vec![ToolChoice::Named("get_weather".to_owned()), ToolChoice::None]);
/// let mut agent = Agent::builder(&engine, demo()).tool_choices(choices).build()?;
/// assert_eq!(agent.run("Is it raining in Paris?")?.steps.len(), 1);
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[derive(Clone, Default)]
pub enum ToolChoices {
    /// The choice of the turn's options. A choice that requires a call applies to the first reply only, and
    /// the next ones are free: otherwise the turn would have no answer.
    #[default]
    Options,
    /// One for each reply, in order; the replies after them are free.
    Sequence(Vec<ToolChoice>),
    /// A function of the reply's number in the turn, from 0, and the steps so far.
    With(Arc<Choose>),
}

impl ToolChoices {
    /// Chooses by a function of the reply's number in the turn, from 0, and the steps so far.
    pub fn with(choose: impl Fn(usize, &[AgentStep]) -> ToolChoice + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(choose))
    }

    /// Returns the choice of a reply; `first` is the choice in the turn's options.
    pub(super) fn of(&self, reply: usize, steps: &[AgentStep], first: &ToolChoice) -> ToolChoice {
        match self {
            Self::Options if reply == 0 || *first == ToolChoice::None => first.clone(),
            Self::Options => ToolChoice::Auto,
            Self::Sequence(choices) => choices.get(reply).cloned().unwrap_or_default(),
            Self::With(choose) => choose(reply, steps),
        }
    }
}

impl fmt::Debug for ToolChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options => f.write_str("Options"),
            Self::Sequence(choices) => f.debug_tuple("Sequence").field(choices).finish(),
            Self::With(_) => f.write_str("With(..)"),
        }
    }
}
