//! Thinking: control of the reasoning before an answer.

use lm_template::{Map, Value};

use crate::error::{Error, Result};

/// Control of the model's reasoning before its answer.
///
/// ```
/// use lm_conversation::{ThinkingConfig, ThinkingMode, TurnOptions};
///
/// // At most 200 tokens of reasoning, then the answer.
/// let thinking = ThinkingConfig { mode: ThinkingMode::On, max_tokens: Some(200) };
/// let turn = TurnOptions { thinking, ..TurnOptions::default() };
/// # assert_eq!(turn.thinking.max_tokens, Some(200));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThinkingConfig {
    /// Thinking mode.
    pub mode: ThinkingMode,
    /// Maximum number of reasoning tokens in a reply; then the end of the channel is forced. `None`: the
    /// conversation's limit, or none.
    pub max_tokens: Option<usize>,
}

/// Thinking mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMode {
    /// The conversation's mode; of a conversation, the template's default.
    #[default]
    Default,
    /// The model reasons; set by the template's own switch if it has one.
    On,
    /// The model does not reason; set by the template's own switch if it has one. The reasoning channel is
    /// prevented from opening, or closed at once when the prompt has opened it.
    Off,
}

impl ThinkingConfig {
    /// Returns the config of a turn whose conversation has the config `default`.
    pub(crate) fn or(self, default: Self) -> Self {
        let mode = if self.mode == ThinkingMode::Default { default.mode } else { self.mode };
        Self { mode, max_tokens: self.max_tokens.or(default.max_tokens) }
    }

    /// Returns true if nothing is requested.
    pub(crate) fn is_default(self) -> bool {
        self == Self::default()
    }

    /// Checks that the model supports the request, and returns the template's variables for it.
    pub(crate) fn variables(self, model: ModelThinking<'_>) -> Result<Map<String, Value>> {
        let wants_reasoning = self.mode == ThinkingMode::On || self.max_tokens.is_some();
        if wants_reasoning && !model.has_channel {
            return Err(Error::NoThinking { model: model.name.to_owned() });
        }
        let value = match self.mode {
            ThinkingMode::Default => return Ok(Map::new()),
            ThinkingMode::On => true,
            ThinkingMode::Off => false,
        };
        Ok(model.switch.map(|switch| (switch.to_owned(), value.into())).into_iter().collect())
    }

    /// Token limit of the reasoning channel, for the reply's constraint.
    pub(crate) fn limit(self) -> Option<usize> {
        if self.mode == ThinkingMode::Off { Some(0) } else { self.max_tokens }
    }
}

/// The model's thinking capabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelThinking<'a> {
    pub(crate) name: &'a str,
    /// True if its dialect has a reasoning channel.
    pub(crate) has_channel: bool,
    /// Template variable that turns reasoning on and off.
    pub(crate) switch: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn template_switch_is_set_if_present() {
        let model = ModelThinking { name: "m", has_channel: true, switch: Some("enable_thinking") };
        for (mode, expected) in [
            (ThinkingMode::Default, json!({})),
            (ThinkingMode::On, json!({"enable_thinking": true})),
            (ThinkingMode::Off, json!({"enable_thinking": false})),
        ] {
            let config = ThinkingConfig { mode, max_tokens: None };
            assert_eq!(Value::Object(config.variables(model).expect("it can")), expected);
            let without = ModelThinking { switch: None, ..model };
            assert_eq!(Value::Object(config.variables(without).expect("it can")), json!({}));
        }
    }

    #[test]
    fn unsupported_thinking_is_an_error() {
        let model = ModelThinking { name: "m", has_channel: false, switch: None };
        let can = |mode, max_tokens| ThinkingConfig { mode, max_tokens }.variables(model).is_ok();
        assert!(can(ThinkingMode::Default, None) && can(ThinkingMode::Off, None));
        assert!(!can(ThinkingMode::On, None) && !can(ThinkingMode::Default, Some(5)));
    }
}
