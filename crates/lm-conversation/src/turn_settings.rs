//! Settings of a conversation that its turns read.

use std::sync::Arc;

use lm_processors::{CallIdForm, Channel, OnMalformed, UnmarkedCalls};

use crate::config::{ConstrainCalls, OnTokenLimit, TurnOptions};
use crate::error::{Error, Result};
use crate::media::MediaSettings;
use crate::overflow::Overflow;
use crate::rendered::ContentTokens;
use crate::thinking::ThinkingConfig;
use crate::tools_note::ToolsNote;

/// Settings of a conversation, or those of one turn; see [`ConversationConfig`](crate::ConversationConfig).
#[derive(Debug, Clone)]
pub(crate) struct TurnSettings {
    pub(crate) on_malformed: OnMalformed,
    pub(crate) content_tokens: ContentTokens,
    pub(crate) constrain_calls: ConstrainCalls,
    pub(crate) unmarked_calls: Option<UnmarkedCalls>,
    pub(crate) tools_note: ToolsNote,
    pub(crate) channels: Option<Arc<[Channel]>>,
    pub(crate) thinking: ThinkingConfig,
    pub(crate) on_token_limit: OnTokenLimit,
    pub(crate) overflow: Overflow,
    pub(crate) prefill_on_init: bool,
    pub(crate) media: MediaSettings,
    pub(crate) call_ids: CallIdForm,
}

impl TurnSettings {
    /// Settings of a turn with these options.
    pub(crate) fn of_turn(&self, options: &TurnOptions) -> Self {
        Self {
            on_malformed: options.on_malformed.unwrap_or(self.on_malformed),
            constrain_calls: options.constrain_calls.unwrap_or(self.constrain_calls),
            thinking: options.thinking.or(self.thinking),
            on_token_limit: options.on_token_limit.unwrap_or(self.on_token_limit),
            overflow: options.overflow.unwrap_or(self.overflow),
            ..self.clone()
        }
    }
}

/// Checks that each channel has a name and markers.
pub(crate) fn check_channels(channels: &[Channel]) -> Result<()> {
    for (index, channel) in channels.iter().enumerate() {
        let fields =
            [("name", &channel.name), ("start marker", &channel.start), ("end marker", &channel.end)];
        if let Some((field, _)) = fields.into_iter().find(|(_, text)| text.is_empty()) {
            return Err(Error::InvalidChannel { index, field });
        }
    }
    Ok(())
}
