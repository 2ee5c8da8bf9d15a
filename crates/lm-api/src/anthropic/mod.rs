//! Anthropic's messages.

mod content;
mod documents;
mod error;
mod fields;
mod message;
mod messages;
mod request;
mod tools;
mod turns;
mod writer;

pub use error::anthropic_error;
pub use request::AnthropicRequest;
pub use writer::MessageWriter;
