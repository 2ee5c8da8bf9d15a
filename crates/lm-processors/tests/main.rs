//! Integration tests in one program.

mod grammar;
mod parsers;
#[path = "../../../testdata/shared.rs"]
mod shared;
#[path = "support/tokens.rs"]
mod tokens;
