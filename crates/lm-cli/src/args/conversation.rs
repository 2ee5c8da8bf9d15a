//! Options of a conversation.

use std::path::Path;

use anyhow::Result;
use lm_conversation::{
    ConstrainCalls, ConversationConfig, DroppedHistory, Overflow, ThinkingConfig, ThinkingMode, ToolChoice,
    ToolsNote, TurnOptions, UnmarkedCalls,
};
use lm_session::SessionConfig;
use lm_template::{Message, Preface, ToolSpec};

use super::numbers::at_least_zero;
use crate::call_settings::{CallSettings, Reading};
use crate::tools::ToolSource;

/// Options of a conversation.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// `demo`, or a file with a JSON array of tool declarations
    #[arg(long, value_name = "demo|FILE")]
    pub tools: Option<ToolSource>,
    /// System prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub system: Option<String>,
    /// Reasoning before the answer [default: as the template decides]
    #[arg(long, value_name = "on|off")]
    pub thinking: Option<Switch>,
    /// Maximum number of reasoning tokens in a reply; the end of reasoning is forced after them
    #[arg(long, value_name = "TOKENS", value_parser = at_least_zero, allow_negative_numbers = true)]
    pub thinking_tokens: Option<usize>,
    /// Do not show the reasoning, which otherwise goes to standard error
    #[arg(long)]
    pub hide_thinking: bool,
    /// Options from the file NAME.toml of the presets, or from FILE: coder, creative, precise, or your own.
    /// Those of the command line come first
    #[arg(long, value_name = "NAME|FILE")]
    preset: Option<String>,
    #[command(flatten)]
    pub calls: CallArgs,
}

/// Value of `--overflow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OverflowArg {
    Error,
    DropOldest,
    SlidingWindow,
}

impl From<OverflowArg> for Overflow {
    fn from(overflow: OverflowArg) -> Self {
        match overflow {
            OverflowArg::Error => Self::Error,
            OverflowArg::DropOldest => Self::DropOldest(DroppedHistory::Kept),
            OverflowArg::SlidingWindow => Self::SlidingWindow,
        }
    }
}

/// Value of a flag that switches something on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

impl From<Switch> for ThinkingMode {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Self::On,
            Switch::Off => Self::Off,
        }
    }
}

/// Options of tool calls.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// Do not constrain tool calls to the tools' schemas while they are generated
    #[arg(long)]
    unconstrained: bool,
    /// A reply that is nothing but a JSON call, without the markers that the model's template declares: a
    /// call, or text [default: a call for models of the Hermes syntax]
    #[arg(long, value_enum, value_name = "AS")]
    unmarked_calls: Option<Reading>,
    /// Instruction after the system message where tools are declared: a text, or `dialect` for one that
    /// repeats the syntax of calls [default: the choice of `lm inspect --probe-tools`, or off]
    #[arg(long, value_name = "TEXT|dialect|off", allow_hyphen_values = true)]
    tools_note: Option<ToolsNote>,
}

impl CallArgs {
    pub fn constrain_calls(&self) -> ConstrainCalls {
        if self.unconstrained { ConstrainCalls::No } else { ConstrainCalls::Yes }
    }

    /// Treatment of a model's calls: the options, else the choice of `lm inspect --probe-tools`.
    ///
    /// # Errors
    /// Those of [`CallSettings::of`].
    pub fn of(&self, model: Option<&Path>) -> Result<CallTreatment> {
        let all_given = self.tools_note.is_some() && self.unmarked_calls.is_some();
        let kept = if all_given { None } else { CallSettings::of(model)? }.unwrap_or_default();
        Ok(CallTreatment {
            constrain_calls: self.constrain_calls(),
            unmarked_calls: self.unmarked_calls.or(kept.unmarked_calls).map(UnmarkedCalls::from),
            tools_note: self.tools_note.clone().or(kept.tools_note()).unwrap_or_default(),
        })
    }
}

/// Treatment of the calls of one model, as in [`ConversationConfig`].
#[derive(Clone, Debug)]
pub struct CallTreatment {
    constrain_calls: ConstrainCalls,
    unmarked_calls: Option<UnmarkedCalls>,
    tools_note: ToolsNote,
}

impl CallTreatment {
    /// Replaces that of `config`.
    pub fn apply(self, config: ConversationConfig) -> ConversationConfig {
        let Self { constrain_calls, unmarked_calls, tools_note } = self;
        ConversationConfig { constrain_calls, unmarked_calls, tools_note, ..config }
    }
}

impl ChatArgs {
    /// The preface without the tools.
    fn preface(&self) -> Preface {
        let messages = self.system.as_deref().map(Message::system).into_iter().collect();
        Preface { messages, ..Preface::default() }
    }

    /// Creates the configuration of a conversation of `model` with this preface.
    ///
    /// # Errors
    /// Those of [`CallArgs::of`].
    pub fn conversation(&self, model: Option<&Path>, session: SessionConfig) -> Result<ConversationConfig> {
        let config = ConversationConfig { preface: self.preface(), session, ..ConversationConfig::default() };
        Ok(self.calls.of(model)?.apply(config))
    }

    /// Options of each turn. Without tools a reply cannot contain a call, as in OpenAI's chat completions,
    /// unless it is unconstrained. With `--tools` there are tools, and there may be others.
    pub fn turn_options(&self, others: &[ToolSpec]) -> TurnOptions {
        let mode = self.thinking.map_or(ThinkingMode::Default, ThinkingMode::from);
        let thinking = ThinkingConfig { mode, max_tokens: self.thinking_tokens };
        let is_free = self.tools.is_some() || !others.is_empty() || self.calls.unconstrained;
        let tool_choice = if is_free { ToolChoice::Auto } else { ToolChoice::None };
        TurnOptions { thinking, tool_choice, ..TurnOptions::default() }
    }
}
