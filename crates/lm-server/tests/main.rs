//! Integration tests in one program.

mod access;
mod agents;
mod any_body;
mod background_streams;
mod chats;
mod clients;
mod compaction;
mod conversations;
mod downloads;
mod lifecycle;
mod llama_cpp;
mod media;
mod messages;
mod metrics;
mod ollama;
mod on_demand;
mod openai_flow;
mod openapi;
mod page;
mod prefixes;
mod requests;
mod rerank;
mod responses_api;
mod support;
mod tools;
mod wires;
