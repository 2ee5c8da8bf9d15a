//! Grammars: they compile, take what is right and stop what is wrong.

mod common;
mod keywords;
mod numbers;
mod properties;
mod replies;
mod schemas;
mod vectors;
mod writer;
