//! JSON schemas as strangers write them, made into schemas that have a grammar.

mod disjoint;
mod document;
mod keywords;
mod normalize;
mod pattern;

pub use normalize::{Reading, Relaxed, relax};
pub(crate) use pattern::{escaped as escaped_regex, full_match};
