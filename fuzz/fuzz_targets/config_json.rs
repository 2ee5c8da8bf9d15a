//! A config.json, and the same bytes as the other small files of a model folder: parsing gives settings or an
//! error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_formats::FileBytes;
use lm_model::ModelFolder;

fuzz_target!(|bytes: &[u8]| {
    let file = |name: &str| (name.to_owned(), FileBytes::Owned(bytes.into()));
    let files =
        ["config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer_config.json"];
    let Ok(model) = ModelFolder::in_memory("fuzz", files.map(file).into()) else { return };
    let _ = (model.config(), model.parameters(), model.generation_config());
    let _ = (model.tensors(), model.chat_template());
});
