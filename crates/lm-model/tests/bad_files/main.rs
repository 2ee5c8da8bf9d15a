//! Files from strangers. For each format there is a table of what can be wrong with it; each row gives a typed error that names the
//! place. None panics, hangs, or takes memory that the file has no bytes for.
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
