//! Errors of a template.

/// Result type of the engine.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure and its line in the template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Error(Box<(Failure, usize)>);

/// Kind of a failure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The template does not compile.
    Syntax(String),
    /// The template called `raise_exception` with this text.
    Raised(String),
    /// The template did something that Python refuses; the text is Python's message.
    Runtime(String),
    /// The rendering exceeded a limit.
    Limit { what: &'static str, limit: u64 },
}

impl Error {
    /// Creates a failure without a line.
    pub(crate) fn new(failure: Failure) -> Self {
        Self(Box::new((failure, 0)))
    }

    /// Creates a runtime failure.
    pub(crate) fn runtime(message: impl Into<String>) -> Self {
        Self::new(Failure::Runtime(message.into()))
    }

    /// Creates a syntax error at a line.
    pub(crate) fn syntax(message: impl Into<String>, line: usize) -> Self {
        Self::new(Failure::Syntax(message.into())).at(line)
    }

    /// Sets the line, unless it is known already.
    pub(crate) fn at(mut self, line: usize) -> Self {
        if self.0.1 == 0 {
            self.0.1 = line;
        }
        self
    }

    /// Line of the template, from 1; 0 if unknown.
    pub(crate) fn line(&self) -> usize {
        self.0.1
    }

    /// Kind of the failure.
    pub(crate) fn into_failure(self) -> Failure {
        self.0.0
    }
}
