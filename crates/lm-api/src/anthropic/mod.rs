//! Anthropic's messages.

mod content;
mod error;
mod fields;
mod message;
mod messages;
mod request;
mod tools;
mod writer;

pub use error::anthropic_error;
pub use request::AnthropicRequest;
pub use writer::MessageWriter;
