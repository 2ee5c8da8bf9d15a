//! Untrusted GGUF files: truncated, overlapping, inconsistent, corrupt. Each gives a typed error that names
//! the place, or a model, without panics, hangs or allocations beyond the size of the file.

use std::fs;
use std::path::{Path, PathBuf};

use lm_formats::{FileBytes, GgufFile, GgufProblem};
use lm_model::{Error, LoadOptions, ModelFolder};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::corpus::chain;

/// Complete file, written by llama.cpp's converter.
const WHOLE: &str = "qwen3-tiny-q8_0.gguf";
const PARTS: [&str; 3] = [
    "qwen3-tiny-bf16-00001-of-00003.gguf",
    "qwen3-tiny-bf16-00002-of-00003.gguf",
    "qwen3-tiny-bf16-00003-of-00003.gguf",
];
/// Files whose architectures read different metadata.
const DAMAGED: &[&str] = &[
    WHOLE,
    "gemma3n-tiny-bf16.gguf",
    "gemma4-tiny-bf16.gguf",
    "gpt-oss-tiny-bf16.gguf",
    "lfm2-tiny-bf16.gguf",
    "qwen3_5-tiny-vision-bf16.gguf",
];
/// Ids of value types.
const U32: u32 = 4;
const I32: u32 = 5;
const STRING: u32 = 8;

pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gguf").join(name)
}

fn whole() -> Vec<u8> {
    fs::read(testdata(WHOLE)).expect("testdata/gguf has it")
}

/// Opens and loads a file of these bytes.
pub fn load(bytes: &[u8]) -> Result<(), Error> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("model.gguf");
    fs::write(&path, bytes).expect("the folder is writable");
    load_path(&path)
}

fn load_path(path: &Path) -> Result<(), Error> {
    ModelFolder::open(path)?.load(&LoadOptions::default(), &mut |_| {}).map(drop)
}

/// Expects the load to fail with all of `words`.
pub fn check(bytes: &[u8], words: &[&str]) -> Error {
    expect(load(bytes).expect_err("the load must fail"), words)
}

fn expect(error: Error, words: &[&str]) -> Error {
    let message = chain(&error);
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
    error
}

pub fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// Returns the offset of a key's value: after the key and the id of the value's type.
pub fn value(bytes: &[u8], key: &str) -> usize {
    let key = text(key);
    let at = bytes.windows(key.len()).position(|window| window == key).expect("the key is in the file");
    at + key.len() + 4
}

/// Returns the offset in a tensor's header entry after its name.
fn tensor(bytes: &[u8], name: &str) -> usize {
    let name = text(name);
    bytes.windows(name.len()).position(|window| window == name).expect("the tensor is in the file")
        + name.len()
}

/// Returns the file with other bytes at a place.
fn with(place: impl Fn(&[u8]) -> usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = whole();
    let place = place(&bytes);
    bytes[place..place + new.len()].copy_from_slice(new);
    bytes
}

/// Returns the file with another value, of the same length, under a key.
fn with_value(key: &str, new: &[u8]) -> Vec<u8> {
    with(|bytes| value(bytes, key), new)
}

#[test]
fn base_file_is_valid() {
    load(&whole()).expect("it loads");
}

/// Truncated anywhere: in the header, a key, a value, a vocabulary, a tensor's header entry, the tensors.
#[test]
fn truncated_file_is_rejected() {
    let bytes = whole();
    let first_tensor = tensor(&bytes, "output.weight");
    let near = [0, 3, 4, 7, 8, 15, 16, 23, 24, 31, first_tensor, bytes.len() - 1];
    let everywhere = (0..bytes.len()).step_by(bytes.len() / 200);
    for length in near.into_iter().chain(everywhere) {
        assert!(load(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn wrong_counts_are_rejected_before_allocation() {
    for count in [1_000_000_u64, 1 << 40, u64::MAX] {
        for place in [8, 16] {
            let error = check(&with(|_| place, &count.to_le_bytes()), &["at most"]);
            let too_many = matches!(
                &error,
                Error::Format(lm_formats::Error::Gguf { problem: GgufProblem::TooMany { .. }, .. })
            );
            assert!(too_many, "{error:?}");
        }
        for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"] {
            check(&with(|bytes| value(bytes, key) + 4, &count.to_le_bytes()), &["elements of an array"]);
        }
        check(&with(|bytes| value(bytes, "tokenizer.ggml.model"), &count.to_le_bytes()), &["text"]);
    }
    // One key fewer: the rest is read as something else.
    let bytes = whole();
    let keys = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    assert!(load(&with(|_| 16, &(keys - 1).to_le_bytes())).is_err());
}

#[test]
fn overlapping_or_outside_tensors_are_rejected() {
    // After a name: number of dimensions, dimensions, type, offset.
    let offset = |bytes: &[u8]| tensor(bytes, "blk.0.attn_q.weight") + 4 + 2 * 8 + 4;
    for (place, word) in [
        (0, "share bytes"),
        (1 << 40, "the file has"),
        (u64::MAX - 31, "the file has"),
        (33, "multiple of 32"),
    ] {
        check(&with(offset, &u64::to_le_bytes(place)), &[word, "blk."]);
    }
}

#[test]
fn wrong_shapes_and_types_are_rejected() {
    let name = "blk.1.ffn_up.weight";
    let dims = |bytes: &[u8]| tensor(bytes, name) + 4;
    for dim in [0, 33, 1 << 62, u64::MAX] {
        check(&with(dims, &u64::to_le_bytes(dim)), &[name, "shape"]);
    }
    check(&with(dims, &(1_u64 << 32).to_le_bytes()), &[name, "the file has"]);
    // Fewer rows, valid in the file: not the shape of the config.
    check(&with(|bytes| dims(bytes) + 8, &32_u64.to_le_bytes()), &["layers.1.mlp.up_proj", "[32, 64]"]);
    let ty = |bytes: &[u8]| dims(bytes) + 2 * 8;
    for (id, word) in [(4_u32, "unknown type 4"), (999, "unknown type 999"), (16, "IQ2_XXS"), (24, "I8")] {
        assert!(load(&with(ty, &id.to_le_bytes())).is_err(), "{word}");
    }
    check(&with(ty, &24_u32.to_le_bytes()), &["up_proj", "I8", "supported"]);
}

#[test]
fn nan_scale_is_reported() {
    let mut bytes = whole();
    let file = GgufFile::read("f", FileBytes::Owned(bytes.clone().into())).expect("it is good");
    let query = file.tensors().iter().find(|tensor| tensor.name == "blk.0.attn_q.weight").expect("it has it");
    // A Q8_0 block starts with its scale, an f16.
    let place = query.range.start;
    bytes[place..place + 2].copy_from_slice(&0x7e00_u16.to_le_bytes());
    check(&bytes, &["self_attn.q_proj", "NaN"]);
}

#[test]
fn invalid_settings_are_reported() {
    let u32s = |key: &str, value: u32| with_value(key, &value.to_le_bytes());
    check(&u32s("qwen3.block_count", 0), &["qwen3.block_count", "0"]);
    check(&u32s("qwen3.block_count", u32::MAX), &["qwen3.block_count", "4294967295"]);
    check(&u32s("qwen3.block_count", 4), &["model.layers.3."]);
    check(&u32s("qwen3.attention.head_count", 0), &["num_attention_heads", "0"]);
    check(&u32s("qwen3.attention.head_count_kv", 3), &["num_key_value_heads", "3"]);
    check(&u32s("qwen3.attention.key_length", 7), &["qwen3.attention.value_length", "7"]);
    check(&u32s("qwen3.embedding_length", u32::MAX), &["hidden_size", "4294967295"]);
    check(&u32s("qwen3.context_length", 0), &["max_position_embeddings", "0"]);
    load(&u32s("tokenizer.ggml.eos_token_id", 1 << 30)).expect("an id outside of the vocabulary means none");
    let float = |key: &str, value: f32| with_value(key, &value.to_le_bytes());
    for value in [f32::NAN, f32::INFINITY] {
        check(&float("qwen3.rope.freq_base", value), &["qwen3.rope.freq_base"]);
        check(&float("qwen3.attention.layer_norm_rms_epsilon", value), &["layer_norm_rms_epsilon"]);
    }
    check(&float("qwen3.rope.freq_base", -1.0), &["rope_theta", "-1"]);
    check(&with_value("general.architecture", &text("qwen9")), &["general.architecture", "qwen9", "llama"]);
    // Another type of the same length.
    let typed = |key: &'static str, ty: u32| with(move |bytes| value(bytes, key) - 4, &ty.to_le_bytes());
    check(&typed("qwen3.context_length", 6), &["qwen3.context_length"]);
    check(&typed("tokenizer.ggml.eos_token_id", 6), &["tokenizer.ggml.eos_token_id", "expected an integer"]);
    assert!(load(&typed("qwen3.block_count", STRING)).is_err());
    assert!(load(&typed("general.architecture", U32)).is_err());
    load(&typed("qwen3.block_count", I32)).expect("integers may have any type");
}

/// Expects a split model, whose shards `spoil` changes in a folder of their own, to fail with `words`.
fn check_parts(spoil: impl FnOnce(&Path), words: &[&str]) {
    let dir = parts();
    spoil(dir.path());
    expect(load_path(&dir.path().join(PARTS[0])).expect_err("the load must fail"), words);
}

fn parts() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in PARTS {
        fs::copy(testdata(name), dir.path().join(name)).expect("the folder is writable");
    }
    dir
}

#[test]
fn mismatched_parts_are_rejected() {
    for name in PARTS {
        load_path(&parts().path().join(name)).expect("any part leads to the others");
    }
    ModelFolder::open(parts().path()).expect("the folder holds one model");
    check_parts(|dir| fs::remove_file(dir.join(PARTS[2])).expect("it is there"), &[PARTS[2]]);
    check_parts(
        |dir| drop(fs::copy(dir.join(PARTS[1]), dir.join(PARTS[2]))),
        &[PARTS[2], "`split.no` is 1 of 3", "expected 2 of 3"],
    );
    check_parts(|dir| drop(fs::copy(testdata(WHOLE), dir.join(PARTS[1]))), &[PARTS[1], "split.no"]);
    let one = tempfile::tempdir().expect("a temporary folder");
    fs::copy(testdata(PARTS[0]), one.path().join("model.gguf")).expect("the folder is writable");
    let error = ModelFolder::open(one.path()).expect_err("the others cannot be found");
    expect(error, &["one of 3", "-00001-of-00003.gguf"]);
}

#[test]
fn folder_of_several_models_lists_them() {
    let dir = parts();
    fs::copy(testdata(WHOLE), dir.path().join(WHOLE)).expect("the folder is writable");
    fs::copy(testdata(WHOLE), dir.path().join("mmproj-f16.gguf")).expect("the folder is writable");
    let error = ModelFolder::open(dir.path()).expect_err("which one is meant?");
    assert!(matches!(&error, Error::SeveralModels { names, .. } if *names == [PARTS[0], WHOLE]), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes changed, removed or inserted anywhere before the tensors give a model or an error.
    #[test]
    fn damaged_files_never_panic(
        name in prop::sample::select(DAMAGED),
        place in 0.0..1.0_f64,
        removed in 0..9_usize,
        inserted in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0xff)], 0..9),
    ) {
        let mut bytes = fs::read(testdata(name)).unwrap();
        let good = GgufFile::read("good", FileBytes::Owned(bytes.clone().into())).unwrap();
        let at = (good.tensors()[0].range.start as f64 * place) as usize;
        bytes.splice(at..at + removed, inserted);
        if let Err(error) = load(&bytes) {
            prop_assert!(!chain(&error).is_empty());
        }
    }
}
