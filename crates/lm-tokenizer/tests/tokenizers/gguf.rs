//! Tokenizers of GGUF files: real vocabularies, their `tokenizer.json` twins, and transformers' results for
//! such files.

use std::fs;

use lm_formats::{FileBytes, GgufFile};
use lm_tokenizer::{SpecialTokens, TextSegment, TokenId, Tokenizer};
use serde_json::Value;

use crate::data::{on_random_texts, reference_ids, workspace};
use crate::gguf_writer::{self, Metadata};
use crate::shared;

fn vocabulary(name: &str) -> Option<Tokenizer> {
    let bytes = fs::read(shared::path(format!("tokenizers/ggml-vocab-{name}.gguf"))?).expect("can be read");
    let file = GgufFile::read(name, FileBytes::Owned(bytes.into())).expect("the file is whole");
    Some(Tokenizer::from_gguf(file.metadata()).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn json(name: &str) -> Option<Tokenizer> {
    let bytes = fs::read(shared::path(format!("tokenizers/{name}-tokenizer.json"))?).expect("can be read");
    Some(Tokenizer::from_json(&bytes).expect("the tokenizer is valid"))
}

fn content(tokenizer: &Tokenizer, text: &str) -> Vec<TokenId> {
    tokenizer.encode_segments(&[TextSegment::Content(text)]).expect("any text has ids")
}

#[test]
fn reference_texts_give_reference_ids() {
    for name in ["gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2"] {
        let (Some(cases), Some(tokenizer)) = (reference_ids(name), vocabulary(name)) else { continue };
        for (text, expected) in cases {
            assert_eq!(content(&tokenizer, &text), expected, "{name}: {text:?}");
        }
    }
}

#[test]
fn gguf_and_json_give_the_same_ids() {
    for name in ["llama-bpe", "phi-3", "qwen2"] {
        let (Some(gguf), Some(json)) = (vocabulary(name), json(name)) else { continue };
        on_random_texts(name, |text| {
            assert_eq!(content(&gguf, &text), content(&json, &text), "{text:?}");
            assert_eq!(gguf.encode(&text).unwrap(), json.encode(&text).unwrap(), "{text:?}");
        });
    }
}

/// A `tokenizer.json` written from a file gives the ids and bytes of the file.
#[test]
fn written_json_equals_its_gguf() {
    for name in ["gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2"] {
        let Some(gguf) = vocabulary(name) else { continue };
        let json = gguf.to_json().expect("it can be written");
        let json = Tokenizer::from_json(json.as_bytes()).expect("it can be read");
        assert_eq!(gguf.vocab_size(), json.vocab_size(), "{name}");
        for id in 0..gguf.vocab_size() as TokenId {
            let of = |tokenizer: &Tokenizer| (tokenizer.token_bytes(id).to_vec(), tokenizer.token_kind(id));
            assert_eq!(of(&gguf), of(&json), "{name}: {id}");
        }
        on_random_texts(name, |text| {
            assert_eq!(content(&gguf, &text), content(&json, &text), "{name}: {text:?}");
            let [a, b] = [&gguf, &json].map(|tokenizer| tokenizer.encode_prompt(&text).expect("has ids"));
            assert_eq!(a, b, "{name}: {text:?}");
            let ids = &a[..];
            let [a, b] = [&gguf, &json].map(|tokenizer| tokenizer.decode(ids, SpecialTokens::Keep));
            assert_eq!(a, b, "{name}: {text:?}");
        });
    }
}

#[test]
fn any_text_round_trips() {
    for name in ["gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2"] {
        let Some(tokenizer) = vocabulary(name) else { continue };
        // SentencePiece's mark is a space to its decoder.
        let marks = matches!(name, "llama-spm" | "phi-3");
        on_random_texts(name, |text| {
            let text = if marks { text.replace('▁', " ") } else { text };
            assert_eq!(tokenizer.decode(&content(&tokenizer, &text), SpecialTokens::Keep), text);
        });
    }
}

/// The `smollm` row against SmolLM2's own tokenizer, whose vocabulary is written as a GGUF file.
#[test]
fn written_gguf_gives_the_ids_of_its_json() {
    let Some(path) = shared::path("tokenizers/smollm2-tokenizer.json") else { return };
    let bytes = fs::read(path).expect("can be read");
    let json = Tokenizer::from_json(&bytes).expect("the tokenizer is valid");
    let file: Value = serde_json::from_slice(&bytes).expect("is JSON");
    let vocabulary = file["model"]["vocab"].as_object().expect("a vocabulary");
    let mut tokens = vec![String::new(); vocabulary.len()];
    for (text, id) in vocabulary {
        tokens[id.as_u64().expect("an id") as usize] = text.clone();
    }
    let mut types = vec![1; tokens.len()];
    for token in file["added_tokens"].as_array().expect("a list") {
        types[token["id"].as_u64().expect("an id") as usize] = 3;
    }
    let merge = |merge: &Value| merge.as_str().expect("a pair").to_owned();
    let merges = file["model"]["merges"].as_array().expect("a list").iter().map(merge).collect();
    let gguf = Metadata::default()
        .with("general.architecture", "llama")
        .with("tokenizer.ggml.model", "gpt2")
        .with("tokenizer.ggml.pre", "smollm")
        .with("tokenizer.ggml.tokens", gguf_writer::Value::Texts(tokens))
        .with("tokenizer.ggml.token_type", gguf_writer::Value::Ints(types))
        .with("tokenizer.ggml.merges", gguf_writer::Value::Texts(merges));
    let gguf = gguf.tokenizer().expect("is valid");
    on_random_texts("smollm", |text| {
        assert_eq!(gguf.encode(&text).unwrap(), json.encode(&text).unwrap(), "{text:?}");
        assert_eq!(content(&gguf, &text), content(&json, &text), "{text:?}");
    });
}

#[test]
fn end_ids_come_from_file_and_chat_format() {
    for (name, expected) in [
        ("gpt-2", &["<|endoftext|>"][..]),
        ("llama-bpe", &["<|end_of_text|>", "<|eot_id|>"]),
        ("llama-spm", &["</s>"]),
        ("phi-3", &["<|endoftext|>", "<|end|>"]),
        ("qwen2", &["<|endoftext|>", "<|im_end|>"]),
    ] {
        let Some(tokenizer) = vocabulary(name) else { continue };
        let expected: Vec<_> = expected.iter().filter_map(|text| tokenizer.token_id(text)).collect();
        assert_eq!(tokenizer.end_ids(), expected, "{name}");
    }
}

/// Ids of transformers for small vocabularies: `testdata/tokenizers/generate_gguf.py`.
struct Goldens(Value);

impl Goldens {
    fn read() -> Self {
        let file = workspace().join("testdata/tokenizers/gguf.json");
        let text = fs::read_to_string(file).expect("it is part of the repository");
        Self(serde_json::from_str(&text).expect("is JSON"))
    }

    fn vocabulary(&self, name: &str) -> Metadata {
        let vocabulary = &self.0["vocabularies"][name];
        let texts = |key: &str| gguf_writer::Value::Texts(list(&vocabulary[key]));
        Metadata::default()
            .with("tokenizer.ggml.tokens", texts("tokens"))
            .with("tokenizer.ggml.token_type", gguf_writer::Value::Ints(list(&vocabulary["types"])))
            .with("tokenizer.ggml.merges", texts("merges"))
    }

    /// Checks that every text has transformers' ids.
    fn check(&self, what: &str, metadata: &Metadata, ids: &Value) {
        self.check_where(what, metadata, ids, |_| true);
    }

    /// The same for several texts.
    fn check_where(&self, what: &str, metadata: &Metadata, ids: &Value, is_wanted: impl Fn(&str) -> bool) {
        let tokenizer = metadata.tokenizer().unwrap_or_else(|error| panic!("{what}: {error}"));
        let texts: Vec<String> = list(&self.0["texts"]);
        let expected: Vec<Vec<TokenId>> = list(ids);
        for (text, expected) in texts.iter().zip(expected).filter(|(text, _)| is_wanted(text)) {
            assert_eq!(tokenizer.encode(text).expect("has ids"), expected, "{what}: {text:?}");
        }
    }
}

fn list<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).expect("a list")
}

#[test]
fn pre_tokenizers_split_like_transformers() {
    let goldens = Goldens::read();
    let metadata = goldens
        .vocabulary("byte_level")
        .with("general.architecture", "llama")
        .with("tokenizer.ggml.model", "gpt2");
    let rows = goldens.0["pre_tokenizers"].as_object().expect("names");
    for (name, index) in rows {
        let ids = &goldens.0["pre_tokenizer_ids"][index.as_u64().expect("an index") as usize];
        goldens.check(name, &metadata.clone().with("tokenizer.ggml.pre", name.as_str()), ids);
    }
}

#[test]
fn sentencepiece_ids_equal_transformers() {
    let goldens = Goldens::read();
    for (name, kind) in goldens.0["sentencepiece"].as_object().expect("names") {
        let text = |key: &str| kind[key].as_str().expect("a text");
        let mut metadata = goldens
            .vocabulary(text("vocabulary"))
            .with("general.architecture", text("architecture"))
            .with("tokenizer.ggml.model", text("model"))
            .with("tokenizer.ggml.unknown_token_id", gguf_writer::Value::U32(3))
            .with("tokenizer.ggml.add_space_prefix", gguf_writer::Value::Bool(kind["prefix"] == true));
        if kind["scores"].is_array() {
            metadata =
                metadata.with("tokenizer.ggml.scores", gguf_writer::Value::Floats(list(&kind["scores"])));
        }
        if text("model") == "llama" {
            metadata = metadata.without("tokenizer.ggml.merges");
        }
        goldens.check(name, &metadata, &kind["ids"]);
    }
}

/// Files without a pre-tokenizer or with the default one, with tokens of type 0, or without types:
/// `testdata/tokenizers/generate_llama_cpp.py`.
#[test]
fn incomplete_files_give_llama_cpp_ids() {
    let file = workspace().join("testdata/tokenizers/llama_cpp.json");
    let text = fs::read_to_string(file).expect("it is part of the repository");
    let cases: Value = serde_json::from_str(&text).expect("is JSON");
    let goldens = Goldens::read();
    for (name, case) in cases.as_object().expect("names") {
        let mut metadata = goldens
            .vocabulary("byte_level")
            .with("general.architecture", "llama")
            .with("tokenizer.ggml.model", "gpt2");
        if let Some(pre) = case["pre"].as_str() {
            metadata = metadata.with("tokenizer.ggml.pre", pre);
        }
        match case["every"].as_u64() {
            Some(0) => metadata = metadata.without("tokenizer.ggml.token_type"),
            Some(every) => {
                let mut types: Vec<i32> = list(&goldens.0["vocabularies"]["byte_level"]["types"]);
                let zeros = types.iter_mut().step_by(every as usize).filter(|ty| **ty == 1);
                zeros.for_each(|ty| *ty = 0);
                metadata = metadata.with("tokenizer.ggml.token_type", gguf_writer::Value::Ints(types));
            }
            None => {}
        }
        // llama.cpp treats a known end-of-turn token as a control token, whatever its type.
        let has_types = case["every"] != 0;
        goldens.check_where(name, &metadata, &case["ids"], |text| has_types || !text.contains("<|im_end|>"));
    }
}
