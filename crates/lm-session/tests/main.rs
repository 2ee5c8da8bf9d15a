//! Integration tests in one binary; tests that measure their process have their own binaries.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod adapters;
mod audio_adapter;
mod cancel;
mod checkpoints;
mod concurrent;
mod constrain;
mod custom_filters;
mod draft_model;
mod embedding_goldens;
mod encoders;
mod failures;
mod filters;
mod generate;
mod handles;
mod kinds;
mod media;
mod media_engines;
mod media_files;
mod models;
mod prefix;
mod record;
mod rollback;
mod running;
mod sampling_threads;
mod saved_cache;
mod saved_session;
mod scoring;
mod sentence_transformers;
#[path = "../../../testdata/shared.rs"]
mod shared;
mod speculation;
mod states;
mod support;
mod vocabularies;
