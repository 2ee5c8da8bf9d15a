#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attachments;
mod change;
mod conversation;
mod error;
mod found;
mod id;
mod limits;
mod lines;
mod message;
mod owner;
mod schema;
mod store;
mod words;

pub use change::Change;
pub use conversation::Conversation;
pub use error::{Error, Result};
pub use found::Found;
pub use id::new_id;
pub use limits::Limits;
pub use lines::{Lines, read_lines};
pub use message::{Message, Role};
pub use owner::Owner;
pub use store::{Store, Summary};
