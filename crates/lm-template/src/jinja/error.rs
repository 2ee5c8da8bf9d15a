//! How a template fails.

/// The result of the engine's functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure and where in the template it was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Error(Box<(Failure, usize)>);

/// What went wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The template does not compile.
    Syntax(String),
    /// The template called `raise_exception` with this text.
    Raised(String),
    /// The template did what Python refuses; the text says it as Python does.
    Runtime(String),
    /// The rendering took more than it may.
    Limit { what: &'static str, limit: u64 },
}

impl Error {
    /// A failure whose place is not known yet.
    pub(crate) fn new(failure: Failure) -> Self {
        Self(Box::new((failure, 0)))
    }

    /// A failure while the template runs.
    pub(crate) fn runtime(message: impl Into<String>) -> Self {
        Self::new(Failure::Runtime(message.into()))
    }

    /// A failure while the template is compiled, at a line.
    pub(crate) fn syntax(message: impl Into<String>, line: usize) -> Self {
        Self::new(Failure::Syntax(message.into())).at(line)
    }

    /// The same failure at this line, unless its place is known already.
    pub(crate) fn at(mut self, line: usize) -> Self {
        if self.0.1 == 0 {
            self.0.1 = line;
        }
        self
    }

    /// Line of the template, from 1; 0 when it is not known.
    pub(crate) fn line(&self) -> usize {
        self.0.1
    }

    /// What went wrong.
    pub(crate) fn into_failure(self) -> Failure {
        self.0.0
    }
}
