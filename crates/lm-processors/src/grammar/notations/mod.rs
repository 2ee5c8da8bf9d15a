//! Grammars in the notations of others.

mod cursor;
mod expression;
mod extent;
mod gbnf;
mod gbnf_parser;
mod gbnf_writer;
mod lark_parser;
mod lark_pattern;

pub use gbnf::{GbnfError, gbnf_grammar, is_gbnf};
pub use lark_pattern::lark_pattern;
