//! Texts, of the reference data and random ones.

use std::fs;
use std::path::PathBuf;

use lm_tokenizer::TokenId;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::shared;

/// Number of random texts for each vocabulary.
const TEXTS: u32 = 1_000;
const SEED: [u8; 32] = *b"GGUF tokenizers and their twins.";

#[allow(dead_code, reason = "the tests of lm-model, which include this file, use the random texts alone")]
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Texts of a reference vocabulary with their ids, special tokens treated as text; `None`, with a printed
/// line, if the reference data is absent.
#[allow(dead_code, reason = "as above")]
pub fn reference_ids(name: &str) -> Option<Vec<(String, Vec<TokenId>)>> {
    let [texts, ids] = ["inp", "out"].map(|end| {
        let path = shared::path(format!("tokenizers/ggml-vocab-{name}.gguf.{end}"))?;
        Some(fs::read_to_string(path).expect("is text"))
    });
    let (texts, ids) = (texts?, ids?);
    let texts: Vec<&str> = texts.split("\n__ggml_vocab_test__\n").collect();
    let lines: Vec<&str> = ids.split('\n').collect();
    assert_eq!(texts.len(), lines.len(), "{name}");
    let ids = |line: &str| line.split_whitespace().map(|id| id.parse().expect("an id")).collect();
    Some(texts.into_iter().zip(lines).map(|(text, line)| (text.to_owned(), ids(line))).collect())
}

/// Text that is hard to tokenize: words, marks, runs of space, other scripts, emoji, and near misses of added
/// tokens.
pub fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z']{1,8}",
        "[ \n\t]{1,4}",
        "[0-9.,:{}\\[\\]\"<|>/_-]{1,6}",
        "[éüßñ日本語한국어אבגم\u{300}\u{200d}😀👩‍🚀]{1,4}",
        Just("<|im_".to_owned()),
        Just("end|>".to_owned()),
        Just(" end ".to_owned()),
        Just("<both>\n <left>".to_owned()),
        Just("<Größe é><wor".to_owned()),
        Just("<tool".to_owned()),
        Just("▁<0x41>Ġ".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// [`text`], or any characters in a row.
pub fn unicode() -> impl Strategy<Value = String> {
    prop_oneof![text(), prop::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter)]
}

/// Runs `check` on random texts from a fixed seed.
pub fn on_random_texts(what: &str, check: impl Fn(String)) {
    let config = Config { cases: TEXTS, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &SEED));
    println!("{what}: {TEXTS} random texts, seed {:?}", String::from_utf8_lossy(&SEED));
    let result = runner.run(&unicode(), |text| {
        check(text);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{what}: {error}"));
}
