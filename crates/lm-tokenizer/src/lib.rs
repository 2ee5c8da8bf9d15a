#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod added_tokens;
mod encoding;
mod error;
mod gguf;
mod guarded;
mod json_checks;
mod steps;
mod stream_decoder;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod token_table;
mod tokenizer;

pub use error::{Error, Result};
pub use stream_decoder::StreamDecoder;
pub use tokenizer::{SpecialTokens, TextPair, TextSegment, TokenId, TokenKind, Tokenizer};
