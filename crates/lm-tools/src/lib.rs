#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// `#[tool]` refers to this crate as `::lm_tools`, in this crate too.
extern crate self as lm_tools;

#[doc(hidden)]
pub mod __private;
mod agent;
mod annotations;
mod arguments;
mod coercion;
mod context;
mod demo;
mod error;
mod execution;
mod invocation;
mod model_with_tools;
mod prompt;
mod relevance;
#[cfg(doctest)]
mod repository_readme;
mod running_calls;
mod schema;
mod steps;
#[cfg(feature = "test-util")]
pub mod testing;
mod tool;
mod tool_error;
mod toolset;
mod truncation;
mod validation;

pub use agent::{
    AfterCall, Agent, AgentBuilder, AgentEvent, AgentLimits, AgentReply, AgentSettings, AgentStream,
    AgentTurn, AgentTurnBuilder, Approval, ApprovalRequest, AtLimit, Audit, AuditEntry, CallRequest,
    Decision, Hook, OnRepeat, Plan, Replay, ToolChoices,
};
pub use annotations::ToolAnnotations;
pub use coercion::{Coerced, Coercion};
pub use context::{CallContext, State, StateType};
pub use demo::demo;
pub use error::{Error, Result};
pub use execution::{CallEvent, CallLimits, CallResult, RetryPolicy};
pub use invocation::{Invocation, InvocationKind, invocations};
pub use lm_conversation::{
    Calls, CancelHandle, Conversation, ConversationConfig, ConversationEvent, ConversationId,
    ConversationStore, Device, Engine, EngineSettings, FinishReason, Finished, FolderStore, IntoMessages,
    InvalidId, LoadOptions, LoadProgress, MemoryStore, ModelFolder, OnCancel, Overflow, Reply,
    ResponseFormat, SamplerParams, SavedConversation, ThinkingConfig, ToolChoice, TurnOptions, Usage,
    WeightFormat,
};
pub use lm_template::{Declarations, Map, Message, Preface, ToolCall, ToolForm, ToolSpec, Value};
pub use lm_tools_macros::{tool, tools};
pub use model_with_tools::ModelWithTools;
pub use prompt::{ChatPrompt, PromptValues};
pub use relevance::select_tools;
pub use running_calls::RunningCalls;
pub use steps::{AgentStep, CallOutcome, StopReason};
pub use tool::{Tool, ToolFuture, ToolOutput};
pub use tool_error::{Retry, ToolError, ToolErrorKind};
pub use toolset::{CheckedCall, IntoTools, Toolset};
pub use validation::check_grammar;
