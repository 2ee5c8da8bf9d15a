//! Small files beside the weights.

use std::fs;
use std::path::Path;

use lm_model::{LoadOptions, ModelFolder};
use serde_json::json;

use crate::common::TinyModel;
use crate::corpus::{Bad, Files, check, expect};
use crate::memory::bounded;

const GENERATION: &str = "generation_config.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

#[rustfmt::skip]
const TABLE: &[Bad] = &[
    Bad { what: "advice that is a list", spoil: |f| *f.bytes(GENERATION) = b"[]".into(), error: "Json", says: &[GENERATION] },
    Bad { what: "advice that is cut", spoil: |f| *f.bytes(GENERATION) = b"{\"top_k\": 4".into(), error: "Json", says: &[GENERATION] },
    Bad { what: "advice of brackets", spoil: |f| *f.bytes(GENERATION) = vec![b'{'; 1 << 20], error: "Json", says: &[GENERATION] },
    Bad { what: "end ids below 0", spoil: |f| f.json(GENERATION, |g| g["eos_token_id"] = json!([-1])), error: "Json", says: &[GENERATION] },
    Bad { what: "end ids beyond numbers", spoil: |f| f.json(GENERATION, |g| g["eos_token_id"] = json!(1_u64 << 40)), error: "Json", says: &[GENERATION] },
    Bad { what: "so many kept that none can be", spoil: |f| f.json(GENERATION, |g| g["top_k"] = json!(-1)), error: "Json", says: &[GENERATION] },
    Bad { what: "a temperature that is a text", spoil: |f| f.json(GENERATION, |g| g["temperature"] = json!("hot")), error: "Json", says: &[GENERATION, "hot"] },
    Bad { what: "advice longer than is read", spoil: |f| *f.bytes(GENERATION) = vec![b' '; 17 << 20], error: "FileTooLarge", says: &[GENERATION] },
    Bad { what: "a tokenizer's settings that are a list", spoil: |f| { f.0.remove(GENERATION); f.set("eos_token_id", json!(null)); *f.bytes(TOKENIZER_CONFIG) = b"[]".into() }, error: "Json", says: &[TOKENIZER_CONFIG] },
    Bad { what: "more templates than are read", spoil: templates, error: "FileTooLarge", says: &["additional_chat_templates/"] },
];

/// Nine templates of 8 MiB and one byte.
fn templates(files: &mut Files) {
    for index in 0..9 {
        files.0.insert(format!("additional_chat_templates/{index}.jinja"), vec![b' '; (8 << 20) + 1]);
    }
}

#[test]
fn invalid_texts_are_rejected() {
    check(&Files::of("models/qwen3-tiny"), TABLE);
}

/// Sparse files of 4 GiB, which take no space on disk.
#[test]
fn too_large_files_are_rejected_unread() {
    let sparse = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 32);
    for name in ["config.json", "tokenizer.json", GENERATION, "chat_template.jinja"] {
        let dir = TinyModel::qwen3().write();
        if sparse(&dir.path().join(name)).is_err() {
            println!("skipped: this file system has no files of 2^32 bytes");
            return;
        }
        let load = || ModelFolder::open(dir.path()).unwrap().load(&LoadOptions::default(), &mut |_| {});
        let error = bounded(name, load).err().expect("it is rejected");
        expect(name, error, "FileTooLarge", &[name, "4294967296"]);
    }
}
