//! OpenAI's completions of prompts without messages.

mod constraint;
mod fields;
mod infill;
mod infilling;
mod logprobs;
mod request;
mod text_stream;
mod writer;

pub use infill::InfillWriter;
pub(crate) use infilling::Infilling;
pub use request::CompletionRequest;
pub(crate) use text_stream::TextStream;
pub use writer::TextWriter;
