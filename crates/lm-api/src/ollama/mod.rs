//! Ollama's chat, generation and embeddings.

mod embed;
mod fields;
mod keep_alive;
mod messages;
mod options;
mod request;
mod writer;

use serde_json::{Value, json};

use crate::error::ApiError;

pub use embed::{ollama_embed, ollama_embeddings};
pub use keep_alive::{KeepAlive, OllamaLoad};
pub use request::OllamaRequest;
pub use writer::{OllamaWriter, ollama_time};

/// Error object of Ollama's API: `{"error": "…"}`.
pub fn ollama_error(error: &ApiError) -> Value {
    let mut object = json!({"error": error.message});
    error.add_length(&mut object);
    object
}
