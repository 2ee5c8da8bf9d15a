// Functions that cannot be tools.
use lm_tools::{CallContext, State, tool};

#[tool]
fn undescribed(a: i64) {}

/// Counts.
#[tool]
fn count(context: &mut CallContext) {}

/// Takes the context.
#[tool]
fn owned_context(context: CallContext) {}

/// Borrows.
#[tool]
fn borrow(text: &str, list: &[u8], name: std::borrow::Cow<'_, str>) {}

/// Has a lifetime.
#[tool]
fn lifetime<'a>(text: &'a str) {}

/// Is generic.
#[tool]
fn generic<T>(value: T) {}

/// Takes anything.
#[tool]
fn anything(value: impl Into<String>) {}

/// Has an argument in some builds only.
#[tool]
fn sometimes(#[cfg(unix)] a: i64) {}

/// Has a pattern.
#[tool]
fn pattern((a, b): (i64, i64)) {}

/// Has another argument.
///
/// # Arguments
/// - `city`: The city.
#[tool]
fn weather(place: String) {}

/// May lack its state.
#[tool]
fn stateless(state: Option<State<u8>>) {}

/// Is dangerous.
#[tool]
unsafe fn dangerous() {}

/// Is no function.
#[tool]
struct Weather;
