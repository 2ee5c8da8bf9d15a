//! Tokenizers in GGUF files written from a `tokenizer.json`: the same ids, also for published tokenizers.

// Unused here: the texts with reference ids.
#[allow(dead_code)]
use crate::shared;
use std::fs;
use std::path::Path;

use lm_model::{ModelFolder, WeightFormat};
use lm_tokenizer::{TextSegment, Tokenizer};
use serde_json::{Value, json};

use crate::common::TinyModel;
use crate::data::on_random_texts;

/// Change of a tokenizer.json.
type Change = fn(&mut Value);

/// A folder with one of the shared tokenizers; its embedding has a row for each token and some more.
fn folder(name: &str, change: Change) -> Option<tempfile::TempDir> {
    let mut tokenizer = shared::json(shared::path(format!("tokenizers/{name}-tokenizer.json"))?);
    change(&mut tokenizer);
    let added = tokenizer["added_tokens"].as_array().expect("a list").iter().map(|token| &token["id"]);
    let ids = tokenizer["model"]["vocab"].as_object().expect("an object").values().chain(added);
    let rows = ids.filter_map(Value::as_u64).max().expect("has tokens") + 5;
    let mut config = TinyModel::llama().config;
    config["vocab_size"] = json!(rows);
    config["hidden_size"] = json!(10);
    config["tie_word_embeddings"] = json!(true);
    let folder = TinyModel::from_config(config).write();
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).expect("can be written");
    Some(folder)
}

/// Both tokenizers of a folder: that of its JSON, and that of the file written from it.
fn both(name: &str, folder: &Path) -> [Tokenizer; 2] {
    let path = folder.join("written.gguf");
    let json = ModelFolder::open(folder).expect("is there");
    let written = json.convert_to_gguf(&path, WeightFormat::F16, &mut |_| {});
    written.unwrap_or_else(|error| panic!("{name}: {error}"));
    let gguf = ModelFolder::open(&path).expect("was written");
    [json, gguf].map(|folder| folder.tokenizer().expect("is valid"))
}

fn check(name: &str, [json, gguf]: &[Tokenizer; 2], text: &str) {
    let content = [TextSegment::Content(text)];
    let [a, b] = [json, gguf].map(|tokenizer| tokenizer.encode_segments(&content).expect("has ids"));
    assert_eq!(a, b, "{name}: {text:?}");
    let [a, b] = [json, gguf].map(|tokenizer| tokenizer.encode(text).expect("has ids"));
    assert_eq!(a, b, "{name}: {text:?}");
}

#[test]
fn written_tokenizer_equals_its_json() {
    for name in ["llama-bpe", "phi-3", "smollm2"] {
        let Some(folder) = folder(name, |_| {}) else { continue };
        let both = both(name, folder.path());
        on_random_texts(name, |text| check(name, &both, &text));
    }
}

#[test]
fn json_in_the_file_covers_other_settings() {
    let changes: [(&str, Change); 4] = [
        ("digits", |json| json["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = json!(false)),
        ("lower case", |json| json["normalizer"] = json!({"type": "Lowercase"})),
        ("NFC", |json| json["normalizer"] = json!({"type": "NFC"})),
        ("rstrip", |json| json["added_tokens"][1]["rstrip"] = json!(true)),
    ];
    for (name, change) in changes {
        let Some(folder) = folder("smollm2", change) else { return };
        let both = both(name, folder.path());
        for text in ["On 12345 Lines\n", "e\u{301}A", "<|im_start|> \n user <|im_end|>", " caf\u{e9} 9"] {
            check(name, &both, text);
        }
    }
}

#[test]
fn unrepresentable_setting_is_rejected_by_name() {
    let cases: [(Change, &str); 2] = [
        (|json| json["added_tokens"][2]["rstrip"] = json!(true), "added_tokens.rstrip"),
        (|json| json["normalizer"]["normalizers"][0]["prepend"] = json!("x"), "normalizer"),
    ];
    for (change, part) in cases {
        let Some(folder) = folder("phi-3", change) else { return };
        let model = ModelFolder::open(folder.path()).expect("is there");
        let rejected =
            model.convert_to_gguf(folder.path().join("written.gguf"), WeightFormat::F16, &mut |_| {});
        let error = rejected.expect_err("is rejected").to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}
