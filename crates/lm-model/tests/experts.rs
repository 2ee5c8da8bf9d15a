//! Mixtures of experts and weights with scales, from folders as they are published.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::logits_of;
use lm_model::{Error, KvDtype, LoadOptions, LoadedModel, ModelFolder, WeightFormat};
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(name)
}

fn load(path: &Path, quantization: Option<WeightFormat>) -> Result<LoadedModel, Error> {
    let options = LoadOptions { quantization, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    ModelFolder::open(path)?.load(&options, &mut |_| {})
}

fn logits(path: &Path, quantization: Option<WeightFormat>) -> Vec<Vec<f32>> {
    let ids: Vec<u32> = (0..40).map(|i| i * 37 % 300).collect();
    logits_of(&*load(path, quantization).unwrap().model, &ids)
}

/// A copy of a golden folder with changed keys in its config.
fn edited(name: &str, edit: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut config);
    fs::write(path, config.to_string()).unwrap();
    folder
}

#[test]
fn converted_folder_equals_quantised_load() {
    for name in ["qwen3-moe-tiny", "gpt-oss-tiny", "gpt-oss-tiny-bf16", "qwen3-tiny-fp8"] {
        let output = tempfile::tempdir().unwrap();
        let converted = output.path().join("converted");
        let folder = ModelFolder::open(golden(name)).unwrap();
        folder.convert(&converted, WeightFormat::Q8, &mut |_| {}).unwrap();
        assert_eq!(logits(&converted, None), logits(&golden(name), Some(WeightFormat::Q8)), "{name}");
    }
}

#[test]
fn scaled_weights_run_as_stored() {
    for name in ["gpt-oss-tiny", "qwen3-tiny-fp8"] {
        let (stored, exact) = (logits(&golden(name), None), logits(&golden(name), Some(WeightFormat::F32)));
        let norm = |rows: &[Vec<f32>]| rows.iter().flatten().map(|x| x * x).sum::<f32>().sqrt();
        let differences: Vec<Vec<f32>> =
            stored.iter().zip(&exact).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect();
        let relative = norm(&differences) / norm(&exact);
        println!("{name}: {relative}");
        assert!(relative < 0.15, "{name}: off by {relative}");
    }
}

#[test]
fn step_reads_only_routed_experts() {
    let info = load(&golden("qwen3-moe-tiny"), None).unwrap().model.info().clone();
    // Two layers of 8 experts, 2 of them used, 3 matrices of 32 by 32 in bfloat16; an embedding that is not
    // an output head.
    let (inactive, embedding) = (2 * 6 * 3 * 32 * 32 * 2, 320 * 32 * 2);
    assert_eq!(info.decode_bytes, info.weight_bytes - inactive - embedding);
}

#[test]
fn footprint_is_known_before_load() {
    for name in ["gpt-oss-tiny", "qwen3-tiny-fp8", "qwen3-moe-tiny"] {
        ModelFolder::open(golden(name)).unwrap().footprint().unwrap();
    }
}

#[test]
fn invalid_configs_are_reported() {
    let check = |name: &str, edit: fn(&mut Value), named: &str| {
        let error = load(edited(name, edit).path(), None).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    };
    check("qwen3-moe-tiny", |config| config["num_experts_per_tok"] = json!(9), "num_experts_per_tok");
    check("qwen3-moe-tiny", |config| config["num_experts"] = json!(0), "num_experts");
    check("qwen3-moe-tiny", |config| config["moe_intermediate_size"] = json!(24), "expected [24, 32]");
    check(
        "qwen3-moe-tiny",
        |config| config["moe_intermediate_size"] = json!(1_u64 << 60),
        "moe_intermediate_size",
    );
    check("qwen3-moe-tiny", |config| config["decoder_sparse_step"] = json!(0), "decoder_sparse_step");
    check("glm4-moe-tiny-groups", |config| config["n_group"] = json!(5), "n_group");
    check("glm4-moe-tiny-groups", |config| config["n_group"] = json!(12), "n_group");
    check("glm4-moe-tiny-groups", |config| config["topk_group"] = json!(5), "topk_group");
    check("glm4-moe-tiny-groups", |config| config["num_experts_per_tok"] = json!(7), "topk_group");
    check("glm4-moe-tiny-groups", |config| config["n_shared_experts"] = json!(u64::MAX), "n_shared_experts");
    check("deepseek-v2-tiny", |config| config["norm_topk_prob"] = json!(true), "norm_topk_prob");
    check(
        "glm4-moe-lite-tiny",
        |config| config["mlp_layer_types"] = json!(vec!["dense"; 9]),
        "mlp_layer_types",
    );
    check("minimax-m2-tiny", |config| config["rotary_dim"] = json!(9), "rotary_dim");
    check("minimax-m2-tiny", |config| config["scoring_func"] = json!("softmax"), "scoring_func");
    check("olmoe-tiny", |config| config["clip_qkv"] = json!(8.0), "clip_qkv");
    check(
        "qwen2-moe-tiny",
        |config| config["shared_expert_intermediate_size"] = json!(0),
        "shared_expert_intermediate_size",
    );
    check("gpt-oss-tiny", |config| config["swiglu_limit"] = json!(-1.0), "swiglu_limit");
    check("gpt-oss-tiny", |config| config["hidden_act"] = json!("gelu_pytorch_tanh"), "hidden_act");
    // Without the method, 8-bit floats and codes have unsupported types.
    check("qwen3-tiny-fp8", |config| config["quantization_config"] = Value::Null, "F8_E4M3");
    check("gpt-oss-tiny", |config| config["quantization_config"] = Value::Null, "U8");
    check(
        "gpt-oss-tiny",
        |config| config["quantization_config"]["quant_method"] = json!("awq8"),
        "quant_method",
    );
}
