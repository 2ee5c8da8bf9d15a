//! Files that shrink while they are mapped.

use std::fs::File;

use lm_model::{LoadOptions, LoadPhase, LoadProgress, ModelFolder, WeightFormat};

use crate::common::TinyModel;
use crate::corpus::chain;

/// The file is truncated after its header once the first weights are loaded. The next read is an error with
/// the file's name.
#[test]
fn file_shrinking_during_load_is_an_error() {
    for quantization in [None, Some(WeightFormat::Q4)] {
        let dir = TinyModel::llama().write();
        let path = dir.path().join("model.safetensors");
        let options = LoadOptions { quantization, ..LoadOptions::default() };
        let mut cut = false;
        let mut shrink = |progress: LoadProgress| {
            if progress.phase == LoadPhase::Weights && !cut {
                File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
                cut = true;
            }
        };
        let error =
            ModelFolder::open(dir.path()).unwrap().load(&options, &mut shrink).err().expect("it is noticed");
        assert!(cut && chain(&error).contains("it has 4096 now"), "{}", chain(&error));
        assert!(chain(&error).contains("model.safetensors"), "{}", chain(&error));
    }
}
