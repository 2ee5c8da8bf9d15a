//! Thinking: whether and how long a model reasons before it answers.

use lm_template::{Map, Value};

use crate::error::{Error, Result};

/// Whether and how long the model reasons before it answers.
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
    /// Whether it reasons.
    pub mode: ThinkingMode,
    /// Most tokens of reasoning in a reply; its end is forced after them. None: as many as the model likes.
    pub max_tokens: Option<usize>,
}

/// Whether the model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMode {
    /// As its template has it.
    #[default]
    Default,
    /// It does, by the template's own switch where there is one.
    On,
    /// It does not, by the template's own switch where there is one; elsewhere its channel is kept from opening, or closed
    /// at once when the prompt has opened it.
    Off,
}

impl ThinkingConfig {
    /// Whether anything is asked for.
    pub(crate) fn is_default(self) -> bool {
        self == Self::default()
    }

    /// Checks that the model can do what is asked, and gives the template's variables for it.
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

    /// The limit that the reply's constraint has to hold.
    pub(crate) fn limit(self) -> Option<usize> {
        if self.mode == ThinkingMode::Off { Some(0) } else { self.max_tokens }
    }
}

/// What a model can do about thinking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelThinking<'a> {
    pub(crate) name: &'a str,
    /// Its dialect has a channel for it.
    pub(crate) has_channel: bool,
    /// The template's variable that turns it on and off.
    pub(crate) switch: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_templates_switch_is_set_where_there_is_one() {
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
    fn what_cannot_be_had_is_an_error_and_not_silence() {
        let model = ModelThinking { name: "m", has_channel: false, switch: None };
        let can = |mode, max_tokens| ThinkingConfig { mode, max_tokens }.variables(model).is_ok();
        assert!(can(ThinkingMode::Default, None) && can(ThinkingMode::Off, None));
        assert!(!can(ThinkingMode::On, None) && !can(ThinkingMode::Default, Some(5)));
    }
}
