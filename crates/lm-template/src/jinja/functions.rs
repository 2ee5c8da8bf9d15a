//! The functions transformers gives to chat templates.

use jiff::civil::DateTime;
use minijinja::{Environment, Error, ErrorKind, Value};

use super::marked::unmark;

/// What a template said when it called `raise_exception`; the source of the engine's error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Raised(pub(crate) String);

/// The time behind `strftime_now`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Clock {
    /// The machine's, in its own time zone.
    #[default]
    System,
    /// Always the same.
    Fixed(DateTime),
}

pub(super) fn add(environment: &mut Environment<'static>, clock: Clock) {
    environment.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        let message = unmark(&message.to_string());
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    environment.add_function("strftime_now", move |format: &str| -> Result<String, Error> {
        let now = match clock {
            Clock::System => jiff::Zoned::now().datetime(),
            Clock::Fixed(now) => now,
        };
        jiff::fmt::strtime::format(format, now)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {error}")))
    });
}
