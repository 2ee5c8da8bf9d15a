//! OpenAI's Responses API.

mod content;
mod fields;
mod input;
mod item_kinds;
mod items;
mod request;
mod store;
mod writer;

pub use request::ResponsesRequest;
pub use store::{ResponseStore, StoredResponse};
pub use writer::ResponsesWriter;
