//! Integration tests in one program.

mod anthropic;
mod builtin_tools;
mod completions;
mod continued;
mod embeddings;
mod fields;
mod foreign;
mod foreign_tools;
mod histories;
mod ollama;
mod requests;
mod responses;
mod responses_calls;
mod responses_records;
mod support;
mod truncated;
