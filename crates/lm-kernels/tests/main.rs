//! Integration tests in one program.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod conformance;
mod ggml;
