//! Errors of templates.

/// Result of compiling or rendering a template.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Result inside the engine; the error is boxed to keep the stack frames of nested evaluations small.
pub(crate) type BoxedResult<T, E = Box<Error>> = std::result::Result<T, E>;

/// A template that does not compile, or fails while rendering.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The template does not compile.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the template, from 1.
        line: usize,
        /// Description of the problem.
        message: String,
    },
    /// The template called `raise_exception`.
    #[error("{message}")]
    Raised {
        /// The template's message.
        message: String,
    },
    /// The template did something that Jinja2 or Python refuses, such as an operation on an undefined value.
    #[error("line {line}: {message}")]
    Runtime {
        /// Line of the template, from 1; 0 if unknown.
        line: usize,
        /// Python's message, or one like it.
        message: String,
    },
    /// The rendering exceeded a limit.
    #[error("exceeds the limit of {limit} {resource}")]
    Limit {
        /// `steps`, `bytes of text`, `bytes of values` or `nested calls`.
        resource: &'static str,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// Creates a runtime error; [`at`](Self::at) adds the line.
    pub(crate) fn runtime(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::Runtime { line: 0, message: message.into() })
    }

    /// Creates a syntax error at a line.
    pub(crate) fn syntax(message: impl Into<String>, line: usize) -> Box<Self> {
        Box::new(Self::Syntax { line, message: message.into() })
    }

    /// Sets the line of a runtime error, unless it is known already.
    pub(crate) fn at(mut self: Box<Self>, at: usize) -> Box<Self> {
        if let Self::Runtime { line, .. } = &mut *self
            && *line == 0
        {
            *line = at;
        }
        self
    }
}
