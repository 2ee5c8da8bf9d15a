//! Values of templates, which are Python's, and the data that they hold.

mod args;
mod dict;
mod function;
mod generator;
mod ids;
mod macros;
mod path;
mod value;

pub(crate) use args::{Args, flag, required};
pub(crate) use dict::{Dict, ENTRY_BYTES, Key};
pub(crate) use function::Function;
pub(crate) use generator::{Cursor, Generator, Operation};
pub(crate) use ids::{ObjectId, ScopeId};
pub(crate) use macros::Macro;
pub(crate) use path::Path;
pub(crate) use value::{Items, Range, SHARED_BYTES, Value, check_depth, truncated};
