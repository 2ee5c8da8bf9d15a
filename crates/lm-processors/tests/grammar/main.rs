//! Grammars: they compile, take what is right and stop what is wrong.

mod common;
mod keywords;
mod listed;
mod names;
mod numbers;
mod properties;
mod random;
mod replies;
mod round_trip;
mod schemas;
mod vectors;
mod walk;
mod writer;
