//! The Jinja that chat templates are written in: Jinja2 3.1.6 as transformers 5.23 sets it up (immutable sandbox,
//! `trim_blocks`, `lstrip_blocks`, no escaping, loop controls, `{% generation %}`), with texts that know where they
//! came from and limits on everything. Source: Jinja2's documentation and its behaviour.
//!
//! | module | what it has |
//! |---|---|
//! | `syntax` | source to syntax tree |
//! | `machine` | runs the tree: statements, expressions, scopes, loops, macros, attributes, calls |
//! | `value`, `dict`, `generator`, `text` | Python's values |
//! | `operators`, `formatting`, `python_text`, `json_text` | what Python does with them |
//! | `filters`, `tests`, `methods`, `functions` | what templates call |
//! | `limits` | what a rendering may take |

mod args;
mod dict;
mod error;
mod filters;
mod formatting;
mod functions;
mod generator;
mod json_text;
mod limits;
mod machine;
mod methods;
mod operators;
mod python_text;
mod syntax;
mod tests;
mod text;
mod value;

use std::ops::Range;
use std::sync::Arc;

use syntax::ast::Body;

pub(crate) use dict::Dict;
pub(crate) use error::{Error, Failure, Result};
pub(crate) use functions::Clock;
pub(crate) use limits::Limits;
pub(crate) use text::Text;
pub(crate) use value::{Value, check_depth};

/// A compiled template.
#[derive(Debug, Clone)]
pub(crate) struct Template(Arc<Body>);

impl Template {
    /// Compiles a source.
    pub(crate) fn new(source: &str) -> Result<Self> {
        syntax::parse(source).map(|body| Self(Arc::new(body)))
    }

    /// Renders it: the text, and the byte ranges that `{% generation %}` blocks have in it.
    pub(crate) fn render(
        &self,
        variables: Vec<(String, Value)>,
        clock: Clock,
        limits: &Limits,
    ) -> Result<(Text, Vec<Range<usize>>)> {
        machine::render(&self.0, variables, clock, limits)
    }
}
