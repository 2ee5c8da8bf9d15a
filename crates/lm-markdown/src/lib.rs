#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod characters;
mod code;
mod document;
mod formula;
mod html;
mod html_stream;
mod math_text;
mod parse;
mod prepare;
mod sanitise;
mod segments;
mod stable;
mod terminal;
mod terminal_stream;

pub use document::{Alignment, Block, Inline, Item};
pub use html_stream::{HtmlStream, Piece};
pub use parse::parse;
pub use terminal_stream::{Colours, TerminalStream};
