//! OpenAI's chat completions.

mod fields;
mod head;
mod logprobs;
mod output;
mod request;
mod response;
mod response_format;
mod tools;
mod writer;

pub(crate) use fields::{NAMES, logprobs};
pub use head::CompletionHead;
pub(crate) use logprobs::{finite, scores};
pub(crate) use output::OutputFields;
pub use response::completion;
pub(crate) use response::{finish_reason, usage};
pub use response_format::response_format;
pub(crate) use response_format::response_format_at;
pub(crate) use tools::ToolFields;
pub use tools::{tool_choice, tool_choice_word};
pub use writer::ChunkWriter;
