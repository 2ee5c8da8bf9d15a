//! Integration tests in one binary; tests that measure their process have their own binaries.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod adapters;
mod audio;
mod common;
#[path = "../../lm-tokenizer/tests/tokenizers/data.rs"]
mod data;
mod drafts;
mod experts;
mod folder;
mod footprint;
mod forward;
mod gguf_tokenizers;
#[path = "common/golden_folder.rs"]
mod golden_folder;
mod goldens;
mod groups;
mod memory;
mod pack_cache;
#[path = "common/prompt.rs"]
mod prompt;
mod quantized;
mod sentence_transformers;
#[path = "../../../testdata/shared.rs"]
mod shared;
mod vision;
