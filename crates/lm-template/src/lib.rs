#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod capabilities;
mod chat;
mod chat_templates;
mod content;
mod error;
mod json_layout;
mod media;
mod message;
mod openapi_schema;
mod orders;
mod polyfills;
mod preface;
mod probe;
mod prompt;
mod prompt_template;
mod provenance;
mod role;
mod single_turn;
mod tool_call;
mod tool_form;
mod tool_spec;

pub use capabilities::{CallIds, Capabilities, ThinkingSwitch};
pub use chat::ContinueField;
pub use chat_templates::{ChatTemplates, TemplateChoice};
pub use content::{Content, Part};
pub use error::{Error, Result};
pub use lm_jinja::{DateTime, Origin};
pub use media::{Media, MediaSource};
pub use message::{Message, messages_from_json};
pub use orders::{MissingContent, Orders};
pub use polyfills::{Polyfill, PolyfilledPrompt, PolyfilledTemplate, Polyfills};
pub use preface::Preface;
pub use probe::THINKING_VARIABLES;
pub use prompt::{Prompt, Segment};
pub use prompt_template::{GenerationPrompt, PromptTemplate, RenderInput};
pub use role::Role;
pub use serde_json::{Map, Value};
pub use single_turn::{AfterPart, SingleTurnPrompt};
pub use tool_call::ToolCall;
pub use tool_form::{Declarations, ToolForm};
pub use tool_spec::ToolSpec;
