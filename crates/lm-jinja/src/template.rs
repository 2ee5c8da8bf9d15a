//! A compiled template and its renderings.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::budget::{Budget, Limits};
use crate::clock::Clock;
use crate::error::Result;
use crate::evaluation::BUILTINS;
use crate::origin::Origin;
use crate::syntax::ast::Tree;
use crate::text::Text;
use crate::variables::VariableText;
use crate::{evaluation, syntax, variables};

/// A compiled template. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Template(Arc<Tree>);

/// Settings of a rendering.
#[derive(Clone, Copy)]
pub struct RenderOptions<'a> {
    /// Clock of `strftime_now`.
    pub clock: Clock,
    /// Limits on time and memory.
    pub limits: Limits,
    /// Origin of each text of the variables, keys included. By default all are [`Origin::Template`].
    pub origin: &'a dyn Fn(VariableText<'_>) -> Origin,
}

impl Default for RenderOptions<'_> {
    fn default() -> Self {
        Self { clock: Clock::System, limits: Limits::default(), origin: &|_| Origin::Template }
    }
}

/// A rendered text, with the origin of each character.
#[derive(Debug, Clone)]
pub struct Rendering {
    text: Text,
    generation: Vec<Range<usize>>,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::Syntax`](crate::Error::Syntax) with the line.
    pub fn new(source: &str) -> Result<Self> {
        syntax::parse(source, BUILTINS).map(|tree| Self(Arc::new(tree))).map_err(|error| *error)
    }

    /// Renders the template with `variables`.
    ///
    /// # Errors
    /// If the template calls `raise_exception`, does something that Jinja2 refuses, or exceeds a limit.
    pub fn render(&self, variables: &Map<String, Value>, options: &RenderOptions<'_>) -> Result<Rendering> {
        let budget = Budget::new(options.limits);
        let (text, mut generation) = variables::convert(variables, options.origin, &budget)
            .and_then(|variables| evaluation::render(&self.0, variables, options.clock, &budget))
            .map_err(|error| *error)?;
        // A range inside a macro has offsets of the output at that time, which may not be character
        // boundaries.
        let is_boundary = |at: usize| text.as_str().is_char_boundary(at);
        generation.retain(|range| is_boundary(range.start) && is_boundary(range.end));
        Ok(Rendering { text, generation })
    }
}

impl Rendering {
    /// The text.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Segments of the text, each of one origin; they join to the text, and none is empty.
    pub fn segments(&self) -> impl Iterator<Item = (Origin, &str)> {
        self.text.segments()
    }

    /// Byte ranges of the text inside `{% generation %}` blocks.
    pub fn generation(&self) -> &[Range<usize>] {
        &self.generation
    }
}
