#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | source to syntax tree |
//! | `values`, `text` | Python values |
//! | `interpreter`, `evaluation` | state of a rendering; statements, expressions, loops, macros, attributes, calls |
//! | `operators`, `formatting`, `python_text` | operations on values |
//! | `filters`, `predicates`, `methods`, `functions` | callables of templates |
//! | `budget` | limits of a rendering |
#![forbid(unsafe_code)]

mod budget;
mod builtins;
mod clock;
mod error;
mod evaluation;
mod filters;
mod formatting;
mod functions;
mod interpreter;
mod methods;
mod operators;
mod origin;
mod predicates;
mod python_text;
mod strftime;
mod syntax;
mod template;
mod text;
mod values;
mod variables;

pub use budget::Limits;
pub use clock::Clock;
pub use error::{Error, Result};
pub use jiff::civil::DateTime;
pub use origin::Origin;
pub use serde_json::{Map, Value};
pub use template::{RenderOptions, Rendering, Template};
pub use variables::VariableText;
