//! A safetensors file: it gives the places of its tensors, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_model::{FileBytes, ModelFolder};

fuzz_target!(|bytes: &[u8]| {
    let files = vec![("model.safetensors".to_owned(), FileBytes::Owned(bytes.into()))];
    let Ok(tensors) = ModelFolder::in_memory("fuzz", files).and_then(|model| model.tensors()) else { return };
    let total: usize = tensors.iter().map(|tensor| tensor.bytes).sum();
    assert!(total <= bytes.len(), "{total} bytes of tensors in a file of {}", bytes.len());
});
