//! Reasoning effort of a request.

use lm_conversation::{ThinkingConfig, ThinkingMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Levels of effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// Returns true if the effort asks for reasoning: `low` and above.
    pub fn reasons(self) -> bool {
        !matches!(self, Self::None | Self::Minimal)
    }
}

/// Thinking of the turn, and the effort as a variable of the template: some templates read it. Effort `none`
/// turns thinking off; `low` and above turn it on where the template can, which the engine knows.
pub(crate) fn thinking(
    effort: Option<Effort>,
    max_tokens: Option<usize>,
) -> (ThinkingConfig, Option<(String, Value)>) {
    let mode = if effort == Some(Effort::None) { ThinkingMode::Off } else { ThinkingMode::Default };
    (ThinkingConfig { mode, max_tokens }, effort.map(|effort| ("reasoning_effort".to_owned(), json!(effort))))
}
