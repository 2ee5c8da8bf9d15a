//! Scale values: of 8-bit floats, exponents of MXFP4, scales and zero points of groups.

use half::{bf16, f16};
use lm_model::{LoadOptions, ModelFolder, WeightFormat};
use serde_json::{Value, json};

use crate::corpus::{Bad, Files, TENSORS, check, testdata};

/// Overwrites the first bytes of a tensor.
fn put(files: &mut Files, tensor: &str, bytes: &[u8]) {
    files.tensor(TENSORS, tensor)[..bytes.len()].copy_from_slice(bytes);
}

/// Sets a field of a tensor's header entry.
fn describe(files: &mut Files, tensor: &str, field: &str, value: Value) {
    files.header(TENSORS, |header| header[tensor][field] = value);
}

/// Takes a tensor out under its name; its bytes stay.
fn hide(files: &mut Files, tensor: &str) {
    files.header(TENSORS, |header| {
        let entries = header.as_object_mut().unwrap();
        let hidden = entries.remove(tensor).unwrap();
        entries.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), hidden);
    });
}

/// Sets a key of `quantization_config`.
fn method(files: &mut Files, key: &str, value: Value) {
    files.json("config.json", |config| config["quantization_config"][key] = value);
}

const F8: &str = "model.layers.0.self_attn.q_proj.weight";
const FACTORS: &str = "model.layers.0.self_attn.q_proj.weight_scale_inv";

#[rustfmt::skip]
const FP8: &[Bad] = &[
    Bad { what: "a factor that is NaN", spoil: |f| put(f, FACTORS, &f32::NAN.to_le_bytes()), error: "TensorValue", says: &[FACTORS, "NaN"] },
    Bad { what: "an infinite factor", spoil: |f| put(f, FACTORS, &f32::INFINITY.to_le_bytes()), error: "TensorValue", says: &[FACTORS, "inf"] },
    Bad { what: "factors of other blocks", spoil: |f| method(f, "weight_block_size", json!([16, 16])), error: "TensorShape", says: &["weight_scale_inv"] },
    Bad { what: "blocks of nothing", spoil: |f| method(f, "weight_block_size", json!([0, 32])), error: "InvalidValue", says: &["quantization_config.weight_block_size", "[0, 32]"] },
    Bad { what: "blocks that are negative", spoil: |f| method(f, "weight_block_size", json!([-1, 32])), error: "Json", says: &["config.json"] },
    Bad { what: "blocks of other dimensions", spoil: |f| method(f, "weight_block_size", json!([16])), error: "Json", says: &["config.json"] },
    Bad { what: "blocks larger than all matrices", spoil: |f| method(f, "weight_block_size", json!([u64::MAX, u64::MAX])), error: "TensorShape", says: &["weight_scale_inv", "[1, 1]"] },
    Bad { what: "another 8-bit float", spoil: |f| method(f, "fmt", json!("e5m2")), error: "UnsupportedValue", says: &["quantization_config.fmt", "e5m2"] },
    Bad { what: "factors that are integers", spoil: |f| describe(f, FACTORS, "dtype", json!("I32")), error: "TensorDtype", says: &[FACTORS, "I32"] },
    Bad { what: "no factors", spoil: |f| hide(f, FACTORS), error: "TensorDtype", says: &[F8, "F8_E4M3"] },
];

#[test]
fn invalid_fp8_factors_are_rejected() {
    check(&Files::of("models/qwen3-tiny-fp8"), FP8);
}

const BLOCKS: &str = "model.layers.0.mlp.experts.down_proj_blocks";
const EXPONENTS: &str = "model.layers.0.mlp.experts.down_proj_scales";

#[rustfmt::skip]
const MXFP4: &[Bad] = &[
    Bad { what: "an exponent that encodes NaN", spoil: |f| put(f, EXPONENTS, &[255]), error: "Weight", says: &["down_proj", "NaN"] },
    Bad { what: "no exponents", spoil: |f| hide(f, EXPONENTS), error: "MissingTensor", says: &[EXPONENTS] },
    Bad { what: "exponents of other blocks", spoil: |f| describe(f, EXPONENTS, "shape", json!([8, 64, 1])), error: "TensorShape", says: &[BLOCKS, "[8, 64, 1, 16]"] },
    Bad { what: "exponents that are signed", spoil: |f| describe(f, EXPONENTS, "dtype", json!("I8")), error: "TensorDtype", says: &[EXPONENTS, "I8"] },
    Bad { what: "codes of other blocks", spoil: |f| describe(f, BLOCKS, "shape", json!([8, 32, 1, 32])), error: "TensorShape", says: &[BLOCKS] },
    Bad { what: "so many blocks that columns overflow", spoil: many_blocks, error: "TensorShape", says: &[BLOCKS] },
];

/// Zero rows of 2⁶² blocks.
fn many_blocks(files: &mut Files) {
    for (tensor, shape) in [(EXPONENTS, json!([0, 1_u64 << 62])), (BLOCKS, json!([0, 1_u64 << 62, 16]))] {
        files.header(TENSORS, |header| {
            let was = header[tensor].clone();
            header[format!("{tensor}_bytes")] = was.clone();
            header[tensor]["shape"] = shape;
            header[tensor]["data_offsets"] = json!([was["data_offsets"][0], was["data_offsets"][0]]);
        });
    }
}

#[test]
fn invalid_mxfp4_exponents_are_rejected() {
    check(&Files::of("models/gpt-oss-tiny"), MXFP4);
}

const CODES: &str = "model.layers.0.self_attn.q_proj.qweight";
const ZEROS: &str = "model.layers.0.self_attn.q_proj.qzeros";
const SCALES: &str = "model.layers.0.self_attn.q_proj.scales";
const ORDER: &str = "model.layers.0.self_attn.q_proj.g_idx";

#[rustfmt::skip]
const GROUPS: &[Bad] = &[
    Bad { what: "a scale that is NaN", spoil: |f| put(f, SCALES, &f16::NAN.to_le_bytes()), error: "TensorValue", says: &[SCALES, "NaN"] },
    Bad { what: "an infinite scale", spoil: |f| put(f, SCALES, &f16::INFINITY.to_le_bytes()), error: "TensorValue", says: &[SCALES, "inf"] },
    Bad { what: "scales that are integers", spoil: |f| describe(f, SCALES, "dtype", json!("I16")), error: "TensorDtype", says: &[SCALES, "I16"] },
    Bad { what: "scales of another shape", spoil: |f| describe(f, SCALES, "shape", json!([64, 2])), error: "TensorShape", says: &[SCALES, "[2, 64]"] },
    Bad { what: "no scales", spoil: |f| hide(f, SCALES), error: "MissingTensor", says: &[SCALES] },
    Bad { what: "no zero points", spoil: |f| hide(f, ZEROS), error: "MissingTensor", says: &[ZEROS] },
    Bad { what: "codes that are floats", spoil: |f| describe(f, CODES, "dtype", json!("F32")), error: "TensorDtype", says: &[CODES, "F32", "I32"] },
    Bad { what: "codes in one row", spoil: |f| describe(f, CODES, "shape", json!([512])), error: "UnsupportedValue", says: &["quantization_config.group_size", CODES] },
    Bad { what: "bits that it has not", spoil: |f| method(f, "bits", json!(2)), error: "UnsupportedValue", says: &["quantization_config.bits", "2"] },
    Bad { what: "bits without end", spoil: |f| method(f, "bits", json!(u64::MAX)), error: "UnsupportedValue", says: &["quantization_config.bits"] },
    Bad { what: "groups of nothing", spoil: |f| method(f, "group_size", json!(0)), error: "UnsupportedValue", says: &["quantization_config.group_size", "0"] },
    Bad { what: "groups of a negative size", spoil: |f| method(f, "group_size", json!(i64::MIN)), error: "UnsupportedValue", says: &["quantization_config.group_size"] },
    Bad { what: "groups larger than all rows", spoil: |f| method(f, "group_size", json!(1_u64 << 62)), error: "UnsupportedValue", says: &["quantization_config.group_size", "qweight"] },
    Bad { what: "a group that is not there", spoil: |f| put(f, ORDER, &[255; 4]), error: "UnsupportedValue", says: &["quantization_config.desc_act"] },
    Bad { what: "an order of floats", spoil: |f| describe(f, ORDER, "dtype", json!("F32")), error: "TensorDtype", says: &[ORDER, "F32"] },
];

#[test]
fn invalid_group_scales_are_rejected() {
    check(&Files::of("groups/gptq-sym"), GROUPS);
}

const PACKED: &str = "model.layers.0.self_attn.q_proj.weight_packed";
const PACKED_ZEROS: &str = "model.layers.0.self_attn.q_proj.weight_zero_point";
const PACKED_SCALES: &str = "model.layers.0.self_attn.q_proj.weight_scale";
const PACKED_SHAPE: &str = "model.layers.0.self_attn.q_proj.weight_shape";

/// Sets a key of the weights of the only group.
fn weights(files: &mut Files, key: &str, value: Value) {
    files.json("config.json", |config| {
        config["quantization_config"]["config_groups"]["group_0"]["weights"][key] = value;
    });
}

#[rustfmt::skip]
const COMPRESSED: &[Bad] = &[
    Bad { what: "a scale that is NaN", spoil: |f| put(f, PACKED_SCALES, &bf16::NAN.to_le_bytes()), error: "TensorValue", says: &[PACKED_SCALES, "NaN"] },
    Bad { what: "a scale beyond halves", spoil: |f| put(f, PACKED_SCALES, &bf16::MAX.to_le_bytes()), error: "TensorValue", says: &[PACKED_SCALES, "F16"] },
    Bad { what: "no scales", spoil: |f| hide(f, PACKED_SCALES), error: "MissingTensor", says: &[PACKED_SCALES] },
    Bad { what: "scales of another shape", spoil: |f| describe(f, PACKED_SCALES, "shape", json!([2, 64])), error: "TensorShape", says: &[PACKED_SCALES, "[64, 2]"] },
    Bad { what: "zero points of another shape", spoil: |f| describe(f, PACKED_ZEROS, "shape", json!([2, 8])), error: "TensorShape", says: &[PACKED_ZEROS, "[8, 2]"] },
    Bad { what: "codes of bytes", spoil: |f| { describe(f, PACKED, "dtype", json!("U8")); describe(f, PACKED, "shape", json!([64, 32])) }, error: "TensorDtype", says: &[PACKED, "U8", "I32"] },
    Bad { what: "codes that are floats", spoil: |f| describe(f, PACKED, "dtype", json!("F32")), error: "TensorDtype", says: &[PACKED, "F32", "I32"] },
    Bad { what: "another shape than the codes'", spoil: |f| put(f, PACKED_SHAPE, &65_i64.to_le_bytes()), error: "TensorValue", says: &[PACKED_SHAPE, "65", "[64, 64]"] },
    Bad { what: "a shape of floats", spoil: |f| describe(f, PACKED_SHAPE, "dtype", json!("F64")), error: "TensorDtype", says: &[PACKED_SHAPE, "F64"] },
    Bad { what: "codes and floats of the same matrix", spoil: |f| { hide(f, "model.norm.weight"); duplicate(f) }, error: "DuplicateTensor", says: &["q_proj.weight"] },
    Bad { what: "groups of nothing", spoil: |f| weights(f, "group_size", json!(0)), error: "UnsupportedValue", says: &["config_groups.group_0.weights.group_size", "0"] },
    Bad { what: "groups without end", spoil: |f| weights(f, "group_size", json!(1_u64 << 62)), error: "UnsupportedValue", says: &["config_groups.*.weights.group_size", "weight_packed"] },
    Bad { what: "bits that it has not", spoil: |f| weights(f, "num_bits", json!(8)), error: "UnsupportedValue", says: &["weights.symmetric", "false"] },
    Bad { what: "bits below 0", spoil: |f| weights(f, "num_bits", json!(-4)), error: "Json", says: &["config.json"] },
    Bad { what: "another layout", spoil: |f| method(f, "format", json!("marlin-24")), error: "UnsupportedValue", says: &["quantization_config.format", "marlin-24"] },
    Bad { what: "a sparse layout", spoil: |f| method(f, "sparsity_config", json!({"format": "sparse-bitmask"})), error: "UnsupportedValue", says: &["quantization_config.sparsity_config.format", "sparse-bitmask"] },
    Bad { what: "a quantised cache", spoil: |f| method(f, "kv_cache_scheme", json!({"num_bits": 8})), error: "UnsupportedValue", says: &["quantization_config.kv_cache_scheme"] },
];

/// Floats under the name of a matrix that also has codes.
fn duplicate(files: &mut Files) {
    files.header(TENSORS, |header| {
        let entries = header.as_object_mut().unwrap();
        let hidden = entries.remove("model.layers.0.self_attn.rotary_emb.inv_freq").unwrap();
        entries.insert("model.layers.0.self_attn.q_proj.weight".into(), hidden);
    });
}

#[test]
fn invalid_compressed_tensors_scales_are_rejected() {
    check(&Files::of("groups/ct-packed-4"), COMPRESSED);
}

const STORED: &str = "model.layers.0.self_attn.q_proj.weight_scale";

#[rustfmt::skip]
const CONVERTED: &[Bad] = &[
    Bad { what: "a scale that is NaN", spoil: |f| f.tensor(TENSORS, STORED).fill(255), error: "Weight", says: &["q_proj"] },
    Bad { what: "no scales", spoil: |f| hide(f, STORED), error: "MissingTensor", says: &[STORED] },
    Bad { what: "another version", spoil: |f| method(f, "version", json!(99)), error: "UnsupportedValue", says: &["quantization_config", "99"] },
    Bad { what: "another format", spoil: |f| method(f, "format", json!("q8")), error: "TensorShape", says: &["embed_tokens"] },
];

#[test]
fn invalid_converted_scales_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let model = ModelFolder::open(testdata("models/qwen3-tiny")).unwrap();
    let path = folder.path().join("q4");
    model.convert(&path, WeightFormat::Q4, &mut |_| {}).unwrap();
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
    let files =
        files.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    check(&Files(files.collect()), CONVERTED);
    ModelFolder::open(&path).unwrap().load(&LoadOptions::default(), &mut |_| {}).unwrap();
}

/// Scales in the blocks of GGUF files.
mod gguf {
    use super::*;

    #[test]
    fn invalid_block_scales_are_located() {
        let good = std::fs::read(testdata("gguf/mixed.gguf")).unwrap();
        let file =
            lm_formats::GgufFile::read("mixed.gguf", lm_formats::FileBytes::Owned(good.clone().into()))
                .unwrap();
        let mut types = std::collections::BTreeSet::new();
        for tensor in file.tensors() {
            let Some(scale) = scale_in_block(&tensor.ty.to_string()) else { continue };
            if !types.insert(tensor.ty.to_string()) {
                continue;
            }
            let mut bytes = good.clone();
            let place = tensor.range.start + scale.0;
            bytes[place..place + scale.1.len()].copy_from_slice(scale.1);
            let files = Files([("mixed.gguf".to_owned(), bytes)].into());
            let error = files.load().err().unwrap_or_else(|| panic!("{}: it loads", tensor.ty));
            crate::corpus::expect(tensor.name.as_str(), error, "Weight", &["NaN"]);
        }
        assert!(types.len() >= 10, "{types:?}");
    }

    /// Offset of the scale in a block of a type, and bytes that make it NaN.
    fn scale_in_block(ty: &str) -> Option<(usize, &'static [u8])> {
        const NAN: &[u8] = &[0, 0x7e];
        Some(match ty {
            "Q8_0" | "Q4_0" | "Q4_1" | "Q5_0" | "Q5_1" | "IQ4_NL" | "Q4_K" | "Q5_K" => (0, NAN),
            "Q2_K" => (80, NAN),
            "Q3_K" => (108, NAN),
            "Q6_K" => (208, NAN),
            "MXFP4" => (0, &[255]),
            _ => return None,
        })
    }
}
