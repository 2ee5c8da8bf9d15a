//! Settings of GGUF files that are not implemented.

use std::fs;

use lm_formats::{FileBytes, GgufFile, GgufProblem};
use lm_model::{Error, LoadOptions, ModelFolder};

use crate::common::logits_of;
use crate::gguf::{check, load, testdata, text, value};

const QWEN3: &str = "qwen3-tiny-q8_0.gguf";
const LLAMA: &str = "llama-tiny-bias-f16.gguf";
const GRANITE: &str = "granite-tiny-bias-bf16.gguf";
const DEEPSEEK: &str = "deepseek-v3-tiny-direct-f16.gguf";
const EXAONE4: &str = "exaone4-tiny-full-bf16.gguf";
const GRANITE_HYBRID: &str = "granite-hybrid-tiny-bf16.gguf";
const OLMO2: &str = "olmo2-tiny-gqa-bf16.gguf";
const ALIGNMENT: usize = 32;

/// Value preceded by the id of its type.
enum Value {
    Size(u32),
    Float(f32),
    Bool(bool),
    Text(&'static str),
    Sizes(&'static [u32]),
}

use Value::{Bool, Float, Size, Sizes, Text};

impl Value {
    fn bytes(&self) -> Vec<u8> {
        let of = |ty: u32, value: &[u8]| [&ty.to_le_bytes(), value].concat();
        match self {
            Size(size) => of(4, &size.to_le_bytes()),
            Float(number) => of(6, &number.to_le_bytes()),
            Bool(truth) => of(7, &[u8::from(*truth)]),
            Text(value) => of(8, &text(value)),
            Sizes(sizes) => {
                let mut value = [&4_u32.to_le_bytes()[..], &(sizes.len() as u64).to_le_bytes()].concat();
                value.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
                of(9, &value)
            }
        }
    }
}

/// Returns a file with one additional key.
fn with(file: &str, key: &str, value: &Value) -> Vec<u8> {
    let bytes = fs::read(testdata(file)).unwrap();
    let read = GgufFile::read("good", FileBytes::Owned(bytes.clone().into())).unwrap();
    let (head, data) = bytes.split_at(read.tensors()[0].range.start);
    let count = u64::from_le_bytes(head[16..24].try_into().unwrap()) + 1;
    let mut new = [&head[..16], &count.to_le_bytes(), &text(key), &value.bytes(), &head[24..]].concat();
    // The padding of the old header may be longer than the new one needs, and would be read as tensor bytes.
    let filling = head.iter().rev().take_while(|&&byte| byte == 0).count().min(ALIGNMENT);
    let end = (0..=filling).find(|less| {
        let mut shorter = new[..new.len() - less].to_vec();
        shorter.resize(shorter.len().next_multiple_of(ALIGNMENT), 0);
        shorter.extend(data);
        let read = GgufFile::read("new", FileBytes::Owned(shorter.clone().into()));
        read.is_ok_and(|new| shorter.len() - new.tensors()[0].range.start == data.len())
    });
    new.truncate(new.len() - end.expect("a head that ends where the tensors begin"));
    new.resize(new.len().next_multiple_of(ALIGNMENT), 0);
    new.extend(data);
    new
}

#[test]
fn unknown_setting_is_rejected() {
    for (file, key, value, shown) in [
        (QWEN3, "qwen3.attention.sliding_window", Size(5), "5"),
        (QWEN3, "qwen3.logit_scale", Float(0.5), "0.5"),
        (QWEN3, "qwen3.expert_count", Size(8), "8"),
        (QWEN3, "qwen3.rope.freq_base_swa", Float(7.0), "7"),
        (QWEN3, "qwen3.rope.scaling.yarn_ext_factor", Float(0.5), "0.5"),
        (QWEN3, "qwen3.something.new", Text("a text"), "a text"),
        (LLAMA, "llama.attention.sliding_window_pattern", Sizes(&[1, 0]), "a list"),
        (LLAMA, "llama.use_parallel_residual", Bool(true), "true"),
        (OLMO2, "olmo2.attention.clamp_kqv", Float(8.0), "8"),
    ] {
        let error = check(&with(file, key, &value), &[key, shown]);
        let unused = matches!(&error, Error::Format(lm_formats::Error::Gguf { problem: GgufProblem::Unused { name, .. }, .. }) if name == key);
        assert!(unused, "{error:?}");
    }
}

#[test]
fn neutral_setting_is_ignored() {
    for (file, key, value) in [
        (QWEN3, "qwen3.attention.sliding_window", Size(0)),
        (QWEN3, "qwen3.expert_count", Size(0)),
        (QWEN3, "qwen3.rope.scaling.finetuned", Bool(false)),
        (QWEN3, "qwen3.rope.scaling.yarn_ext_factor", Float(1.0)),
        (QWEN3, "general.something.new", Text("a text")),
        (QWEN3, "qwen2.attention.sliding_window", Size(5)),
        (LLAMA, "llama.tensor_data_layout", Text("Meta AI original pth")),
        (LLAMA, "llama.use_parallel_residual", Bool(false)),
        (GRANITE, "granite.rope.scaling.finetuned", Bool(true)),
        (OLMO2, "olmo2.attention.sliding_window", Size(0)),
        (EXAONE4, "exaone4.attention.sliding_window", Size(0)),
    ] {
        load(&with(file, key, &value)).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

/// Returns the file with a key under the prefix of an unknown architecture, so that it is absent.
fn without(bytes: &[u8], key: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let end = value(&bytes, key) - 4;
    bytes[end - key.len()] = b'x';
    bytes
}

fn logits(bytes: &[u8]) -> Vec<Vec<f32>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    let loaded = ModelFolder::open(path).unwrap().load(&LoadOptions::default(), &mut |_| {}).unwrap();
    logits_of(&*loaded.model, &[5, 9, 17, 33])
}

#[test]
fn absent_settings_follow_from_others() {
    const SCALE: &str = "granitehybrid.attention.scale";
    // Of older files: a router with corrections has sigmoids.
    let deepseek = fs::read(testdata(DEEPSEEK)).unwrap();
    assert_eq!(logits(&without(&deepseek, "deepseek2.expert_gating_func")), logits(&deepseek));
    // Attention is scaled by the width of a head, 12.
    let mut granite = fs::read(testdata(GRANITE_HYBRID)).unwrap();
    let place = value(&granite, SCALE);
    granite[place..place + 4].copy_from_slice(&12_f32.sqrt().recip().to_le_bytes());
    assert_eq!(logits(&without(&granite, SCALE)), logits(&granite));
}

#[test]
fn unsupported_settings_are_rejected() {
    for (file, key, value, says) in [
        (GRANITE, "granite.rope.scaling.finetuned", Bool(false), "true, or absent"),
        (LLAMA, "llama.rope.scaling.attn_factor", Float(1.5), "1 where llama.rope.scaling.type is none"),
        (LLAMA, "llama.rope.scaling.type", Text("su"), "none, linear, yarn, longrope"),
        (LLAMA, "llama.rope.scale_linear", Float(f32::NAN), "a finite number"),
    ] {
        check(&with(file, key, &value), &[key, says]);
    }
}
