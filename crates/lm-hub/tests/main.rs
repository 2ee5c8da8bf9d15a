//! Integration tests in one program.

mod pull;
mod stores;
