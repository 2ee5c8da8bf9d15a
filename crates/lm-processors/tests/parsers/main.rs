//! Parsers of all families: rules, reference vectors, and any split of the text.

mod common;
mod dialect;
mod forms;
mod hostile;
mod random;
mod recovery;
mod splits;
#[path = "../support/tokens.rs"]
mod tokens;
mod vectors;
