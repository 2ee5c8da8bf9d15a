//! OpenAI's completions of prompts without messages.

mod constraint;
mod fields;
mod logprobs;
mod request;
mod text_stream;
mod writer;

pub use request::CompletionRequest;
pub(crate) use text_stream::TextStream;
pub use writer::TextWriter;
