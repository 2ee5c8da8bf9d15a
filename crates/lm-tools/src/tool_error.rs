//! Errors of tools, for the model, the log and the execution.

use crate::truncation::truncated;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Display;

/// Maximum bytes of each text of an error of a call.
const MAX_BYTES: usize = 4096;

/// An error of a tool; the model reads its text. Of a text of more than 4096 bytes, a toolset keeps the
/// beginning, with a mark.
///
/// ```
/// use lm_tools::{Retry, ToolError, ToolErrorKind, tool};
///
/// /// Returns the price of a stock.
/// #[tool]
/// fn price(symbol: String) -> Result<f64, ToolError> {
///     let refused = std::io::Error::other("10.0.0.7:443: connection refused");
///     Err(ToolError::failed(refused)
///         .with_kind(ToolErrorKind::Unavailable)
///         .with_retry(Retry::Always)
///         .with_model_text(format_args!("the exchange does not answer for {symbol}")))
/// }
///
/// let error = price("ABC".to_owned()).expect_err("no connection");
/// assert_eq!(error.to_string(), "the exchange does not answer for ABC");
/// assert_eq!(error.log_text(), "10.0.0.7:443: connection refused");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call has an unknown argument.
    #[error("there is no argument `{argument}`, {}", arguments(known))]
    UnknownArgument {
        /// Its name.
        argument: String,
        /// The names of the known arguments.
        known: Vec<String>,
    },
    /// A required argument is missing, or an argument's value does not match its type.
    #[error("argument `{argument}`: {message}")]
    InvalidArgument {
        /// Its name; for a nested value its path, `point.x`.
        argument: String,
        /// The expected and the actual value.
        message: String,
    },
    /// The call failed.
    #[error("{message}")]
    #[non_exhaustive]
    Failed {
        /// Text for the model.
        message: String,
        /// Text for the log; `None`: the text for the model.
        log: Option<String>,
        /// Kind of the failure.
        kind: ToolErrorKind,
        /// Condition of another attempt.
        retry: Retry,
    },
}

/// Kind of a [`ToolError`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No tool has the call's name.
    UnknownTool,
    /// The arguments do not match the schema, or the tool rejects them.
    InvalidArguments,
    /// A named thing does not exist: a file, a place, a record.
    NotFound,
    /// The tool lacks the permission.
    Denied,
    /// A resource is unavailable at the moment: a host, a quota, a thread.
    Unavailable,
    /// Any other failure of the tool.
    #[default]
    Failed,
    /// The tool panicked.
    Panicked,
    /// No result arrived within the time limit.
    TimedOut,
    /// The turn ended before there was a result.
    Cancelled,
}

/// Condition under which a call that failed may be tried again, within its
/// [`RetryPolicy`](crate::RetryPolicy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Another attempt would fail as well.
    #[default]
    Never,
    /// Another attempt may succeed, but this one may have taken effect: only tools that are
    /// [idempotent](crate::ToolAnnotations::is_idempotent) are tried again.
    IfIdempotent,
    /// Another attempt may succeed, and this one had no effect: every tool may be tried again.
    Always,
}

impl ToolError {
    /// Creates an error of the tool itself, of the kind [`ToolErrorKind::Failed`] and without retries. The
    /// alternate format (`{:#}`) is used, which for `anyhow` includes the causes;
    /// [`with_model_text`](Self::with_model_text) keeps them from the model.
    pub fn failed(error: impl Display) -> Self {
        Self::new(ToolErrorKind::Failed, error)
    }

    /// Creates an error of a kind, without retries, with a text as of [`failed`](Self::failed).
    pub fn new(kind: ToolErrorKind, error: impl Display) -> Self {
        Self::Failed { message: format!("{error:#}"), log: None, kind, retry: Retry::Never }
    }

    /// Sets the kind.
    #[must_use]
    pub fn with_kind(self, kind: ToolErrorKind) -> Self {
        let (message, log, _, retry) = self.into_parts();
        Self::Failed { message, log, kind, retry }
    }

    /// Sets the condition of another attempt.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        let (message, log, kind, _) = self.into_parts();
        Self::Failed { message, log, kind, retry }
    }

    /// Sets the text for the model; the previous text, with its causes, is for the log only.
    #[must_use]
    pub fn with_model_text(self, text: impl Display) -> Self {
        let (message, log, kind, retry) = self.into_parts();
        Self::Failed { message: text.to_string(), log: log.or(Some(message)), kind, retry }
    }

    /// Kind of the failure.
    pub fn kind(&self) -> ToolErrorKind {
        match self {
            Self::UnknownArgument { .. } | Self::InvalidArgument { .. } => ToolErrorKind::InvalidArguments,
            Self::Failed { kind, .. } => *kind,
        }
    }

    /// Condition of another attempt.
    pub fn retry(&self) -> Retry {
        match self {
            Self::UnknownArgument { .. } | Self::InvalidArgument { .. } => Retry::Never,
            Self::Failed { retry, .. } => *retry,
        }
    }

    /// Text for the log: the model's text, unless the error has a separate one.
    pub fn log_text(&self) -> Cow<'_, str> {
        match self {
            Self::Failed { log: Some(text), .. } | Self::Failed { message: text, .. } => text.into(),
            other => other.to_string().into(),
        }
    }

    /// Cuts the texts to their limit; once for each error, since a second cut would remove the mark.
    pub(crate) fn cut(mut self) -> Self {
        let cut = |text: &mut String| *text = truncated(std::mem::take(text), MAX_BYTES);
        match &mut self {
            Self::UnknownArgument { argument, known } => {
                cut(argument);
                known.iter_mut().for_each(cut);
            }
            Self::InvalidArgument { argument, message } => [argument, message].into_iter().for_each(cut),
            Self::Failed { message, log, .. } => {
                cut(message);
                log.iter_mut().for_each(cut);
            }
        }
        self
    }

    pub(crate) fn invalid(argument: impl Into<String>, message: impl Display) -> Self {
        Self::InvalidArgument { argument: argument.into(), message: message.to_string() }
    }

    pub(crate) fn missing(argument: &str) -> Self {
        Self::invalid(argument, "missing")
    }

    fn into_parts(self) -> (String, Option<String>, ToolErrorKind, Retry) {
        let (kind, retry) = (self.kind(), self.retry());
        match self {
            Self::Failed { message, log, .. } => (message, log, kind, retry),
            other => (other.to_string(), None, kind, retry),
        }
    }
}

fn arguments(known: &[String]) -> String {
    match known {
        [] => "the tool takes none".to_owned(),
        known => format!("the arguments are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_without_arguments_says_so() {
        let error = ToolError::UnknownArgument { argument: "zone".to_owned(), known: vec![] };
        assert_eq!(error.to_string(), "there is no argument `zone`, the tool takes none");
    }

    #[test]
    fn causes_are_logged_when_a_model_text_is_set() {
        let error = || anyhow::anyhow!("no route to 10.0.0.7").context("request failed");
        let plain = ToolError::failed(error());
        assert_eq!(
            (plain.to_string(), &*plain.log_text()),
            (plain.log_text().to_string(), &*plain.to_string())
        );
        assert_eq!(plain.to_string(), "request failed: no route to 10.0.0.7");
        let replaced = plain.with_model_text("first").with_model_text("the service is down");
        assert_eq!(replaced.to_string(), "the service is down");
        assert_eq!(replaced.log_text(), "request failed: no route to 10.0.0.7");
        assert_eq!((replaced.kind(), replaced.retry()), (ToolErrorKind::Failed, Retry::Never));
    }

    #[test]
    fn long_texts_are_cut_for_the_model_and_for_the_log() {
        let error = ToolError::failed("é".repeat(5000)).cut();
        assert_eq!(error.to_string(), format!("{}\n[cut: 4096 of 10000 bytes]", "é".repeat(2048)));
        let error = ToolError::failed("é".repeat(5000)).with_model_text("long").cut();
        assert_eq!((error.to_string().len(), error.log_text().len()), (4, 4096 + 27));
        let error = ToolError::invalid("x", "y".repeat(5000)).cut();
        assert!(error.to_string().ends_with("y\n[cut: 4096 of 5000 bytes]"), "{error}");
        let mark = "x\n[cut: 4096 of 5000 bytes]";
        let error = ToolError::invalid("x".repeat(5000), "no number").cut();
        assert!(error.to_string().ends_with(&format!("{mark}`: no number")), "{error}");
        let known = vec!["a".to_owned(), "x".repeat(5000)];
        let error = ToolError::UnknownArgument { argument: "x".repeat(5000), known }.cut();
        assert_eq!(error.to_string().matches(mark).count(), 2, "{error}");
        assert_eq!(ToolError::missing("unit").cut(), ToolError::missing("unit"));
    }

    #[test]
    fn error_of_an_argument_keeps_its_kind_and_text() {
        let error = ToolError::missing("unit");
        assert_eq!((error.kind(), error.retry()), (ToolErrorKind::InvalidArguments, Retry::Never));
        assert_eq!(error.log_text(), "argument `unit`: missing");
        let replaced = error.with_retry(Retry::Always).with_model_text("which unit?");
        assert_eq!((replaced.kind(), replaced.retry()), (ToolErrorKind::InvalidArguments, Retry::Always));
        assert_eq!(
            (replaced.to_string(), &*replaced.log_text()),
            ("which unit?".to_owned(), "argument `unit`: missing")
        );
    }
}
