//! Parsers of all families: rules, reference vectors, and any split of the text.

mod calls;
pub mod common;
mod dialect;
mod forms;
mod hostile;
mod lossless;
mod messages;
mod own_coverage;
mod random;
mod recovery;
mod splits;
mod vectors;
