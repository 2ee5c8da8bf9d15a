//! Runs fuzz targets on their seeds and on mutations of them, with the interface of `libfuzzer-sys` that the
//! targets use.
//!
//! Runs are reproducible: mutations use a pseudo-random generator with a fixed seed. `LM_FUZZ_CASES` sets
//! their number for each target [default: 3,000, of `grammar_parser` 600].

#![forbid(unsafe_code)]

mod mutate;
mod replay;
mod target;

pub use replay::replay;
pub use target::{Corpus, Input};
