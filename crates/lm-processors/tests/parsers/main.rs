//! Parsers of all families: rules, reference vectors, and any split of the text.

mod calls;
mod common;
mod dialect;
mod forms;
mod hostile;
mod lossless;
mod own_coverage;
mod random;
mod recovery;
#[path = "../../../../testdata/shared.rs"]
mod shared;
mod splits;
#[path = "../support/tokens.rs"]
mod tokens;
mod vectors;
#[path = "../grammar/writer.rs"]
mod writer;
