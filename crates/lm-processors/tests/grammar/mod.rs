//! Grammars: they compile, accept valid texts and reject invalid ones.

mod common;
mod differential;
mod enforced;
mod enum_values;
mod held_markers;
mod keywords;
mod name_patterns;
mod names;
mod notations;
mod numbers;
mod patterns;
mod properties;
mod quoted;
mod random;
mod replies;
mod round_trip;
mod schemas;
mod takes;
mod texts;
mod unions;
mod unwritable;
mod vectors;
mod walk;
pub mod writer;
