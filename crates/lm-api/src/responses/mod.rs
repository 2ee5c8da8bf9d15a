//! OpenAI's Responses API.

mod fields;
mod input;
mod items;
mod request;
mod store;
mod writer;

pub use request::ResponsesRequest;
pub use store::{ResponseStore, StoredResponse};
pub use writer::ResponsesWriter;
