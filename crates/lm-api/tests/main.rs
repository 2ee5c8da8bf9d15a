//! Integration tests in one program.

mod anthropic;
mod completions;
mod continued;
mod embeddings;
mod foreign;
mod foreign_tools;
mod ollama;
mod requests;
mod responses;
mod responses_calls;
mod support;
