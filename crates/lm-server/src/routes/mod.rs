//! One file per group of routes.

mod body;
mod chat;
pub mod chat_completions;
pub mod completions;
pub mod embeddings;
pub mod health;
pub mod messages;
pub mod metrics;
pub mod models;
pub mod ollama;
pub mod responses;
mod sse;
pub mod tokens;
pub mod tools;
