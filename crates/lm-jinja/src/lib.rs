#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | source to syntax tree |
//! | `interpreter` | statements, expressions, scopes, loops, macros, attributes, calls |
//! | `value`, `dict`, `generator`, `text` | Python values |
//! | `operators`, `formatting`, `python_text`, `json_text` | operations on them |
//! | `filters`, `tests`, `methods`, `functions` | callables of templates |
//! | `budget` | limits of a rendering |
#![forbid(unsafe_code)]

mod args;
mod budget;
mod dict;
mod error;
mod filters;
mod formatting;
mod functions;
mod generator;
mod interpreter;
mod json_text;
mod methods;
mod operators;
mod origin;
mod python_text;
mod strftime;
mod syntax;
mod template;
mod tests;
mod text;
mod value;
mod variables;

pub use budget::Limits;
pub use error::{Error, Result};
pub use functions::Clock;
pub use jiff::civil::DateTime;
pub use origin::Origin;
pub use serde_json::{Map, Value};
pub use template::{RenderOptions, Rendering, Template};
pub use variables::VariableText;
