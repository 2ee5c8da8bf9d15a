//! One file per group of routes.

mod body;
mod chat;
mod chat_completions;
mod chats;
mod completions;
mod conversations;
mod document;
mod embeddings;
mod health;
mod llama_cpp;
mod messages;
mod metrics;
mod models;
mod ollama;
mod openapi;
mod passages;
mod path_name;
mod presets;
mod pull;
mod render;
mod rerank;
mod responses;
mod sse;
mod table;
mod tokens;
mod tools;

/// Routes of the page that need a key as the API does.
pub(crate) fn page_routes() -> axum::Router<crate::state::SharedApp> {
    render::routes().merge(document::routes()).merge(passages::routes()).merge(presets::routes())
}

pub(crate) use table::ROUTES;
