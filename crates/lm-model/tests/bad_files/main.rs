//! Untrusted files. Each format has a table of defects; each row gives a typed error that names the place,
//! without panics, hangs or memory use beyond the size of the file.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod adapters;
mod config;
mod corpus;
mod folder;
mod gguf;
mod gguf_architectures;
mod gguf_settings;
mod mapped;
mod memory;
mod safetensors;
mod scales;
mod texts;
mod tokenizer;
