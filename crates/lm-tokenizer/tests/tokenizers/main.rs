//! Tokenizers from `tokenizer.json` and from GGUF files against their references.
//!
//! Real ones are read in place from the shared folder (`LM_SHARED`, by default `../shared` beside the
//! checkout); where it is absent, their part is skipped with a printed line.

mod bad_gguf;
mod bad_json;
mod data;
mod gguf;
mod gguf_writer;
mod library;
#[path = "../../../../testdata/shared.rs"]
mod shared;
