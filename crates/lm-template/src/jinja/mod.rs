//! The Jinja engine of chat templates: Jinja2 3.1.6 as configured by transformers 5.23 (immutable sandbox,
//! `trim_blocks`, `lstrip_blocks`, no escaping, loop controls, `{% generation %}`), with texts that track their origin
//! and limits on everything. Source: Jinja2's documentation and its behaviour.
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | source to syntax tree |
//! | `machine` | interpreter: statements, expressions, scopes, loops, macros, attributes, calls |
//! | `value`, `dict`, `generator`, `text` | Python values |
//! | `operators`, `formatting`, `python_text`, `json_text` | operations on them |
//! | `filters`, `tests`, `methods`, `functions` | callables of templates |
//! | `limits` | limits of a rendering |

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
    /// Compiles a template.
    pub(crate) fn new(source: &str) -> Result<Self> {
        syntax::parse(source).map(|body| Self(Arc::new(body)))
    }

    /// Renders the template; returns the text, and the byte ranges of its `{% generation %}` blocks.
    pub(crate) fn render(
        &self,
        variables: Vec<(String, Value)>,
        clock: Clock,
        limits: &Limits,
    ) -> Result<(Text, Vec<Range<usize>>)> {
        machine::render(&self.0, variables, clock, limits)
    }
}
