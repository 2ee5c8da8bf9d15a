//! Integration tests in one program; those that measure their process are programs of their own.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod callable;
mod examples;
mod hostile;
mod matrix;
mod media;
mod media_models;
mod own_processor;
mod pocket;
mod random_calls;
mod real_models;
mod resampled;
mod saved;
#[path = "../../../testdata/shared.rs"]
mod shared;
mod store;
mod tokens;
mod turns;
