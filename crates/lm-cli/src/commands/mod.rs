//! One file per command.

pub mod batch;
pub mod bench;
pub mod chat;
pub mod conversations;
pub mod convert;
pub mod detokenize;
pub mod embed;
pub mod eval;
pub mod generate;
pub mod grammar;
pub mod imatrix;
pub mod inspect;
pub mod list;
pub mod logits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod parse;
pub mod pull;
pub mod replay;
pub mod rerank;
pub mod rm;
pub mod score;
#[cfg(feature = "serve")]
pub mod serve;
pub mod template;
pub mod tokenize;
