//! Integration tests in one program.

mod engine;
mod second_opinion;
#[path = "../../../testdata/shared.rs"]
mod shared;
