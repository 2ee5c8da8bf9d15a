//! What the code of `#[tool]` names; no part of the interface.

pub use crate::arguments::{Given, result, value};
pub use crate::schema::Declaration;
pub use lm_template::Value;

/// The arguments of a call.
pub type Arguments = lm_template::Map<String, Value>;
