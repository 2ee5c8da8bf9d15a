//! LoRA adapters.

use std::fs;
use std::sync::OnceLock;

use lm_model::{AdapterLoader, LoadOptions, ModelFolder, Result};
use serde_json::{Value, json};

use crate::corpus::{Bad, Files, check_with, testdata};

const CONFIG: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
const A: &str = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
const B: &str = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";

fn load(files: Files) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files.0 {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let options = LoadOptions { adapters: vec![folder.path().to_owned()], ..LoadOptions::default() };
    let with = ModelFolder::open(testdata("models/llama-tiny"))?.load(&options, &mut |_| {}).map(drop);
    let later = loader().load(folder.path()).map(drop);
    let shown = |result: &Result<()>| format!("{result:?}");
    assert_eq!(shown(&later), shown(&with), "loaded after the model and with it");
    later
}

/// Loader of adapters for the model, which is loaded once.
fn loader() -> &'static AdapterLoader {
    static LOADER: OnceLock<AdapterLoader> = OnceLock::new();
    LOADER.get_or_init(|| {
        let folder = ModelFolder::open(testdata("models/llama-tiny")).unwrap();
        folder.load(&LoadOptions::default(), &mut |_| {}).unwrap().adapter_loader.unwrap()
    })
}

fn set(files: &mut Files, key: &str, value: Value) {
    files.json(CONFIG, |config| config[key] = value);
}

fn describe(files: &mut Files, tensor: &str, field: &str, value: Value) {
    files.header(TENSORS, |header| header[tensor][field] = value);
}

fn rename(files: &mut Files, from: &str, to: &str) {
    files.header(TENSORS, |header| {
        let entries = header.as_object_mut().unwrap();
        let tensor = entries.remove(from).unwrap();
        entries.insert(to.to_owned(), tensor);
    });
}

/// Both halves with rank 0.
fn no_rank(files: &mut Files) {
    set(files, "rank_pattern", json!({"layers.0.self_attn.q_proj": 0}));
    files.header(TENSORS, |header| {
        for (half, shape) in [(A, json!([0, 64])), (B, json!([64, 0]))] {
            let was = header[half].clone();
            header[half]["shape"] = shape;
            header[half]["data_offsets"] = json!([was["data_offsets"][0], was["data_offsets"][0]]);
            header[half.replace("self_attn", "other")] = was;
        }
    });
}

#[rustfmt::skip]
const TABLE: &[Bad] = &[
    Bad { what: "no config", spoil: |f| drop(f.0.remove(CONFIG)), error: "MissingFile", says: &[CONFIG] },
    Bad { what: "no tensors", spoil: |f| drop(f.0.remove(TENSORS)), error: "MissingFile", says: &[TENSORS] },
    Bad { what: "a config that is a list", spoil: |f| *f.bytes(CONFIG) = b"[]".into(), error: "Json", says: &[CONFIG] },
    Bad { what: "a config that is cut", spoil: |f| f.bytes(CONFIG).truncate(100), error: "Json", says: &[CONFIG] },
    Bad { what: "brackets without end", spoil: |f| *f.bytes(CONFIG) = vec![b'['; 1 << 20], error: "Json", says: &[CONFIG] },
    Bad { what: "no rank", spoil: |f| set(f, "r", json!(null)), error: "Json", says: &[CONFIG] },
    Bad { what: "a rank of 0", spoil: |f| set(f, "r", json!(0)), error: "InvalidValue", says: &[CONFIG, "`r`", "0"] },
    Bad { what: "a rank of 0 and halves like it", spoil: no_rank, error: "InvalidValue", says: &[CONFIG, "rank_pattern.layers.0.self_attn.q_proj", "0"] },
    Bad { what: "a negative rank", spoil: |f| set(f, "r", json!(-4)), error: "Json", says: &[CONFIG] },
    Bad { what: "a rank without end", spoil: |f| set(f, "r", json!(u64::MAX)), error: "InvalidValue", says: &[CONFIG, "`r`"] },
    Bad { what: "a rank that the halves have not", spoil: |f| set(f, "r", json!(5)), error: "TensorShape", says: &["lora_A", "[4, "] },
    Bad { what: "half a rank for some", spoil: |f| set(f, "rank_pattern", json!({"q_proj": 1.5})), error: "InvalidValue", says: &[CONFIG, "rank_pattern.q_proj", "1.5"] },
    Bad { what: "a rank for some that is a text", spoil: |f| set(f, "rank_pattern", json!({"q_proj": "4"})), error: "InvalidValue", says: &[CONFIG, "rank_pattern.q_proj"] },
    Bad { what: "an expression for names", spoil: |f| set(f, "rank_pattern", json!({"(q|k)_proj": 4})), error: "UnsupportedValue", says: &[CONFIG, "rank_pattern", "(q|k)_proj"] },
    Bad { what: "a factor beyond floats", spoil: |f| set(f, "lora_alpha", json!(1e300)), error: "InvalidValue", says: &[CONFIG, "lora_alpha"] },
    Bad { what: "a factor for some beyond floats", spoil: |f| set(f, "alpha_pattern", json!({"q_proj": 1e300})), error: "InvalidValue", says: &[CONFIG, "alpha_pattern.q_proj"] },
    Bad { what: "another method", spoil: |f| set(f, "peft_type", json!("IA3")), error: "UnsupportedValue", says: &[CONFIG, "peft_type", "IA3"] },
    Bad { what: "layers that are repeated", spoil: |f| set(f, "layer_replication", json!([[0, 2]])), error: "UnsupportedValue", says: &[CONFIG, "layer_replication"] },
    Bad { what: "a half that is cut", spoil: |f| { let b = f.bytes(TENSORS); b.truncate(b.len() - 1) }, error: "TensorFile", says: &[TENSORS] },
    Bad { what: "halves of another shape", spoil: |f| describe(f, A, "shape", json!([64, 4])), error: "TensorShape", says: &[A, "[64, 4]", "[4, 64]"] },
    Bad { what: "a half of integers", spoil: |f| describe(f, A, "dtype", json!("I32")), error: "TensorDtype", says: &[A, "I32"] },
    Bad { what: "one half alone", spoil: |f| rename(f, B, "b"), error: "MissingTensor", says: &[B] },
    Bad { what: "a pair beside no matrix", spoil: |f| { rename(f, A, &A.replace("q_proj", "z_proj")); rename(f, B, &B.replace("q_proj", "z_proj")) }, error: "UnexpectedTensor", says: &["z_proj"] },
    Bad { what: "a pair beside a layer that is not there", spoil: |f| { rename(f, A, &A.replace("layers.0", "layers.9")); rename(f, B, &B.replace("layers.0", "layers.9")) }, error: "UnexpectedTensor", says: &["layers.9"] },
];

#[test]
fn invalid_adapters_are_rejected() {
    let good = Files::of("adapters/llama-tiny-all");
    load(good.clone()).expect("the files that the others are made of are good");
    check_with(&good, TABLE, load);
}
