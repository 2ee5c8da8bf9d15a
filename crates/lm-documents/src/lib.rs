#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod child;
mod document;
mod encoding;
mod error;
mod layout;
mod passages;
mod pdf;
mod reader;

pub use child::run_child;
pub use document::Document;
pub use error::{Error, Result};
pub use passages::Passages;
pub use reader::Reader;
