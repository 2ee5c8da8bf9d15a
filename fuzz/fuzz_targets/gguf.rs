//! A GGUF file: parsing gives a model's settings, texts, tokenizer and the locations of its tensors, or an
//! error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_formats::{FileBytes, GgufFile};
use lm_model::ModelFolder;

fuzz_target!(|bytes: &[u8]| {
    let file = FileBytes::Owned(bytes.into());
    if let Ok(gguf) = GgufFile::read("model.gguf", file.clone()) {
        let mut end = 0;
        for tensor in gguf.tensors() {
            assert!(
                tensor.range.start >= end && tensor.range.end <= bytes.len(),
                "{tensor:?} of {} bytes",
                bytes.len()
            );
            end = tensor.range.end;
        }
        for (key, _) in gguf.metadata().keys() {
            let _ = (gguf.metadata().str(key), gguf.metadata().ints(key), gguf.metadata().floats(key));
            let strings = gguf.metadata().strings(key).ok().flatten();
            let _ = strings.map(Iterator::count);
        }
    }
    let Ok(model) = ModelFolder::in_memory("fuzz", vec![("model.gguf".to_owned(), file)]) else { return };
    let _ = (model.config(), model.parameters(), model.tensors());
    let _ = (model.tokenizer(), model.chat_template(), model.generation_config());
});
