//! OpenAI's Responses API.

mod compaction;
mod content;
mod conversations;
mod fields;
mod input;
mod item_kinds;
mod items;
mod listing;
mod record;
mod request;
mod store;
mod summary;
mod writer;

pub use compaction::{CompactionRequest, CompactionWriter};
pub use conversations::Conversations;
pub use listing::item_page;
pub use request::ResponsesRequest;
pub use store::{ResponseStore, StoredResponse};
pub use writer::ResponsesWriter;
