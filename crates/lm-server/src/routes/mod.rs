//! One file per group of routes.

mod body;
mod chat;
mod chat_completions;
mod chats;
mod completions;
mod conversations;
mod embeddings;
mod health;
mod llama_cpp;
mod messages;
mod metrics;
mod models;
mod ollama;
mod openapi;
mod path_name;
mod render;
mod rerank;
mod responses;
mod sse;
mod table;
mod tokens;
mod tools;

pub(crate) use render::routes as page_routes;
pub(crate) use table::ROUTES;
