//! Broken, inconsistent or incomplete folders: each gives a typed error that names the place.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use lm_model::{Error, LoadOptions, ModelFolder, WeightFormat};
use proptest::prelude::*;
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

use crate::common::{self, Tensor, TinyModel};
use crate::corpus::chain;

fn load_error(path: &Path, options: &LoadOptions) -> Error {
    let folder = ModelFolder::open(path).expect("the folder itself is there");
    folder.load(options, &mut |_| {}).err().expect("the load must fail")
}

/// Writes the model, lets `spoil` change the folder, and expects a load to fail with all of `words`.
fn check(model: &TinyModel, spoil: impl FnOnce(&Path), words: &[&str]) -> Error {
    let dir = model.write();
    spoil(dir.path());
    expect(load_error(dir.path(), &LoadOptions::default()), words)
}

fn expect(error: Error, words: &[&str]) -> Error {
    let message = chain(&error);
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
    error
}

fn check_config(change: impl FnOnce(&mut Value), words: &[&str]) {
    let mut model = TinyModel::qwen3();
    change(&mut model.config);
    check(&model, |_| {}, words);
}

#[test]
fn missing_folder_or_file_is_reported() {
    let error = ModelFolder::open("no/such/folder").unwrap_err();
    assert!(
        matches!(&error, Error::Format(lm_formats::Error::Io { file, .. }) if file == "no/such/folder"),
        "{error:?}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(ModelFolder::open(file.path()), Err(Error::Format(lm_formats::Error::Io { .. }))));
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let error = check(&TinyModel::qwen3(), |dir| fs::remove_file(dir.join(name)).unwrap(), &[name]);
        assert!(
            matches!(&error, Error::Format(lm_formats::Error::MissingFile { file, .. }) if file == name),
            "{error:?}"
        );
    }
}

#[test]
fn folder_in_place_of_a_file_is_reported() {
    let replace = |dir: &Path| {
        fs::remove_file(dir.join("config.json")).unwrap();
        fs::create_dir(dir.join("config.json")).unwrap();
    };
    check(&TinyModel::qwen3(), replace, &["config.json", "not a regular file"]);
}

#[test]
fn truncated_files_are_reported() {
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        for kept in [0.0, 0.3, 0.999] {
            let cut = |dir: &Path| {
                let bytes = fs::read(dir.join(name)).unwrap();
                fs::write(dir.join(name), &bytes[..(bytes.len() as f64 * kept) as usize]).unwrap();
            };
            let error = check(&TinyModel::qwen3(), cut, &[]);
            let named = chain(&error).contains(name) || matches!(error, Error::Tokenizer(_));
            assert!(named, "{name} cut to {kept}: {error:?}");
        }
    }
}

#[test]
fn wrong_header_length_is_rejected() {
    for (length, words) in [
        (u64::MAX, "18446744073709551615 bytes"),
        (1 << 40, "1099511627776 bytes"),
        (7, "safetensors"),
        (0, "safetensors"),
    ] {
        let lie = |dir: &Path| {
            let path = dir.join("model.safetensors");
            let mut bytes = fs::read(&path).unwrap();
            bytes[..8].copy_from_slice(&length.to_le_bytes());
            fs::write(&path, bytes).unwrap();
        };
        let error = check(&TinyModel::qwen3(), lie, &["model.safetensors", words]);
        assert!(matches!(error, Error::Format(lm_formats::Error::TensorFile { .. })), "{error:?}");
    }
}

#[test]
fn unsupported_values_list_the_supported() {
    check_config(|c| c["model_type"] = json!("t5"), &["model_type", "t5", "llama, "]);
    check_config(|c| c["hidden_act"] = json!("mish"), &["hidden_act", "mish", "silu"]);
    check_config(
        |c| c["quantization_config"] = json!({"quant_method": "bitsandbytes"}),
        &["quantization_config", "bitsandbytes"],
    );
    check_config(|c| c["partial_rotary_factor"] = json!(0.5), &["partial_rotary_factor", "0.5"]);
    let axial = json!({"rope_type": "axial", "factor": 4.0});
    check_config(|c| c["rope_scaling"] = axial.clone(), &["rope_scaling.rope_type", "axial", "llama3"]);
    check_config(|c| c["rope_parameters"] = axial, &["rope_parameters.rope_type", "axial"]);
    let gemma = |model_type: &str, key: &str, value: Value, known: &str| {
        let mut model = TinyModel::llama();
        model.config.as_object_mut().unwrap().remove("rope_parameters");
        model.config["model_type"] = json!(model_type);
        model.config[key] = value;
        check(&model, |_| {}, &[key, known]);
    };
    gemma("gemma", "use_bidirectional_attention", json!(true), "null");
    gemma("gemma2", "use_bidirectional_attention", json!(true), "null");
    gemma("gemma2", "hidden_activation", json!("relu6"), "gelu_pytorch_tanh");
    gemma("gemma3_text", "attn_logit_softcapping", json!(50.0), "null");
    gemma("gemma4_text", "per_layer_config", json!({"0": {"sliding_window": 4}}), "head_dim");
    let per_layer = json!({"full_attention": {"rope_type": "default"}});
    check_config(|c| c["rope_parameters"] = per_layer, &["rope_parameters.full_attention"]);
    check_config(
        |c| c["layer_types"] = json!(["full_attention", "chunked", "full_attention"]),
        &["layer_types", "chunked"],
    );
}

#[test]
fn invalid_rope_parameters_are_reported() {
    let rope = |parameters: Value, words: &[&str]| check_config(|c| c["rope_scaling"] = parameters, words);
    rope(json!({"type": "linear"}), &["rope_scaling.factor", "absent"]);
    rope(json!({"type": "linear", "factor": 0}), &["rope_scaling.factor", "0", "positive"]);
    rope(json!({"type": "dynamic", "factor": 0.5}), &["rope_scaling.factor", "0.5", "at least 1"]);
    rope(json!({"type": "yarn", "factor": 4.0, "beta_fast": -1}), &["rope_scaling.beta_fast", "-1"]);
    let context = "original_max_position_embeddings";
    rope(json!({"type": "yarn", "factor": 4.0, context: 1}), &["rope_scaling.original_max", "above 1"]);
    rope(json!({"type": "llama3"}), &["low_freq_factor", "absent"]);
    let short = json!({"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]});
    rope(short, &["rope_scaling.short_factor", "a list of 1", "positive numbers, one for each pair"]);
}

/// Keys of a single architecture.
#[test]
fn architecture_checks_its_own_keys() {
    let of = |model_type: &str, key: &str, value: Value, words: &[&str]| {
        let mut model = TinyModel::llama();
        model.config["model_type"] = json!(model_type);
        model.config[key] = value;
        check(&model, |_| {}, &[&[key], words].concat());
    };
    of("granite", "logits_scaling", json!(0), &["0", "positive"]);
    of("granite", "residual_multiplier", json!(1e300), &["positive"]);
    of("smollm3", "no_rope_layers", json!([1]), &["[1]", "0 or 1 for each of the"]);
    of("smollm3", "no_rope_layer_interval", json!(0), &["0", "positive"]);
    of("qwen2", "layer_types", json!(["chunked_attention"]), &["layers"]);
    of("mistral", "sliding_window", json!(0), &["0"]);
    of("phi3", "partial_rotary_factor", json!(0.0), &["0"]);
    of("phi3", "partial_rotary_factor", json!(0.2), &["elements", "even"]);
    of(
        "ministral3",
        "rope_parameters",
        json!({"rope_type": "yarn", "factor": 2.0}),
        &["llama_4_scaling_beta", "absent"],
    );
    of("cohere2", "logit_scale", json!(0), &["0", "positive"]);
    of("cohere2", "sliding_window_pattern", json!(0), &["0", "positive"]);
    of("exaone4", "sliding_window_pattern", json!("LLLG"), &["LLLG", "layer_types"]);
    of(
        "hunyuan_v1_dense",
        "rope_parameters",
        json!({"rope_type": "dynamic", "alpha": -1}),
        &["alpha", "-1", "positive"],
    );
    of("deepseek_v3", "v_head_dim", json!(0), &["0", "1 to 65536"]);
    of("nemotron_h", "hybrid_override_pattern", json!("M".repeat(5000)), &["4097 layers", "4096"]);
    of("nemotron_h", "hybrid_override_pattern", json!(""), &["0 layers"]);
    of("nemotron_h", "time_step_limit", json!([0.0, 0.1]), &["[0.0, 0.1]", "0 and Infinity"]);
    of("starcoder2", "norm_epsilon", json!(0), &["0", "between 0 and 1"]);
    of("lfm2", "conv_L_cache", json!(1), &["1", "2 to 256"]);
    of("lfm2", "norm_eps", json!(1.0), &["between 0 and 1"]);
    of("lfm2", "block_ff_dim", json!(1), &["1", "2 to"]);
    of("lfm2", "block_multiple_of", json!(0), &["0", "1 to"]);
    of("lfm2", "block_ffn_dim_multiplier", json!(-1.0), &["-1", "above 0"]);
    of("lfm2", "layer_types", json!(["conv"]), &["a list of 1", "layers"]);
    of("qwen3_5_text", "hidden_act", json!("gelu"), &["gelu", "silu"]);
    of("qwen3_5_text", "attn_output_gate", json!(false), &["false", "true"]);
    of("qwen3_5_text", "full_attention_interval", json!(0), &["0", "positive"]);
    of("qwen3_5_text", "linear_conv_kernel_dim", json!(1 << 20), &["1048576", "1 to 256"]);
    of("qwen3_5_text", "linear_value_head_dim", json!(0), &["0", "1 to"]);
    of("qwen3_5_text", "linear_num_key_heads", json!(5), &["5", "divisor of linear_num_value_heads = 32"]);
}

#[test]
fn invalid_mamba2_values_are_reported() {
    let check = |key: &str, value: Value, expected: &str| {
        let mut model = TinyModel::llama();
        model.config["model_type"] = json!("bamba");
        model.config["mamba_n_heads"] = json!(8);
        model.config[key] = value;
        check(&model, |_| {}, &[key, expected]);
    };
    check("mamba_n_groups", json!(3), "a divisor of mamba_n_heads = 8");
    check("mamba_d_head", json!(8), "mamba_n_heads = 80 / 8");
    check("mamba_d_head", json!("wide"), "a number, or auto");
}

#[test]
fn invalid_gemma_values_are_reported() {
    let check = |model_type: &str, key: &str, value: Value, expected: &str| {
        let mut model = TinyModel::llama();
        model.config.as_object_mut().unwrap().remove("rope_parameters");
        model.config["model_type"] = json!(model_type);
        model.config["num_kv_shared_layers"] = json!(0);
        model.config[key] = value;
        check(&model, |_| {}, &[key, expected]);
    };
    check("gemma2", "query_pre_attn_scalar", json!(0), "positive");
    check("gemma2", "final_logit_softcapping", json!(-1.0), "positive");
    check("gemma3_text", "sliding_window_pattern", json!(0), "positive");
    check("gemma3_text", "rope_parameters", json!({"rope_theta": 1e4}), "layers of this type");
    check("gemma3n_text", "altup_active_idx", json!(4), "less than altup_num_inputs = 4");
    check("gemma3n_text", "altup_num_inputs", json!(0), "1 to 64");
    check("gemma3n_text", "altup_num_inputs", json!(1 << 24), "1 to 64");
    check("gemma3n_text", "laurel_rank", json!(0), "1 to");
    check("gemma3n_text", "intermediate_size", json!([64]), "2 layers");
    check("gemma3n_text", "activation_sparsity_pattern", json!([0.5, 1.0]), "less than 1");
    check("gemma3n_text", "activation_sparsity_pattern", json!([0.5]), "2 layers");
    check("gemma3n_text", "num_kv_shared_layers", json!(2), "less than num_hidden_layers = 2");
    check("gemma4_text", "num_kv_shared_layers", json!(1), "an earlier one of its type");
    check("gemma4_text", "global_head_dim", json!(15), "even");
    check("gemma4_text", "vocab_size_per_layer_input", json!(3), "at least vocab_size");
    check("gemma4_text", "rope_parameters", json!(null), "object");
    check("gemma4_text", "hidden_size_per_layer_input", json!(usize::MAX), "1 to");
}

#[test]
fn invalid_values_are_reported() {
    check_config(
        |c| c["num_key_value_heads"] = json!(3),
        &["num_key_value_heads", "divisor of num_attention_heads = 4"],
    );
    check_config(|c| c["num_key_value_heads"] = json!(0), &["num_key_value_heads", "0"]);
    check_config(|c| c["head_dim"] = json!(13), &["head_dim", "13", "even"]);
    check_config(|c| c["rms_norm_eps"] = json!(0.0), &["rms_norm_eps"]);
    check_config(|c| c["rope_theta"] = json!(-1.0), &["rope_theta"]);
    check_config(|c| c["layer_types"] = json!(["full_attention"]), &["layer_types", "3 layers"]);
    check_config(
        |c| {
            c["layer_types"] = json!(["sliding_attention", "full_attention", "full_attention"]);
            c["sliding_window"] = json!(null);
        },
        &["sliding_window"],
    );
    check_config(|c| drop(c.as_object_mut().unwrap().remove("hidden_size")), &["config.json", "hidden_size"]);
    check_config(|c| c["hidden_size"] = json!("wide"), &["config.json", "wide"]);
    let llama = {
        let mut model = TinyModel::llama();
        model.config["num_attention_heads"] = json!(3);
        model
    };
    check(&llama, |_| {}, &["num_attention_heads", "divisor of hidden_size = 40"]);
}

/// Sizes that the tensors do not have must not be allocated: they would need petabytes.
#[test]
fn huge_sizes_fail_before_allocation() {
    for (key, word) in [
        ("hidden_size", "shape"),
        ("intermediate_size", "shape"),
        ("vocab_size", "shape"),
        ("num_attention_heads", "num_attention_heads"),
        ("head_dim", "head_dim"),
    ] {
        check_config(|c| c[key] = json!(1 << 24), &[word]);
        check_config(|c| c[key] = json!(u64::MAX), &[key]);
    }
    check_config(|c| c["num_hidden_layers"] = json!(1_000_000_000_000_u64), &["num_hidden_layers"]);
    check_config(|c| c["num_hidden_layers"] = json!(4096), &["model.layers.3."]);
    check_config(|c| c["max_position_embeddings"] = json!(1_u64 << 40), &["max_position_embeddings"]);
}

const QUERY: &str = "model.layers.1.self_attn.q_proj.weight";

#[test]
fn mismatched_tensors_are_reported() {
    let mut model = TinyModel::qwen3();
    let query = model.tensors.remove(QUERY).unwrap();
    let error = check(&model, |_| {}, &[QUERY]);
    assert!(matches!(error, Error::Format(lm_formats::Error::MissingTensor { .. })), "{error:?}");

    let transposed = Tensor { shape: vec![32, 48], values: query.values.clone() };
    model.tensors.insert(QUERY.into(), transposed);
    let error = check(&model, |_| {}, &["model.safetensors", QUERY, "[32, 48]", "expected [48, 32]"]);
    assert!(matches!(error, Error::Format(lm_formats::Error::TensorShape { .. })), "{error:?}");

    model.tensors.insert(QUERY.into(), query);
    model
        .tensors
        .insert("model.layers.0.self_attn.q_proj.bias".into(), Tensor { shape: vec![1], values: vec![0.0] });
    let error = check(&model, |_| {}, &["model.safetensors", "q_proj.bias", "qwen3"]);
    assert!(matches!(error, Error::UnexpectedTensor { .. }), "{error:?}");

    let doubles = TinyModel { dtype: Dtype::F64, ..TinyModel::qwen3() };
    let error = check(&doubles, |_| {}, &["F64", "BF16"]);
    assert!(matches!(error, Error::Format(lm_formats::Error::TensorDtype { .. })), "{error:?}");
}

#[test]
fn redundant_tensors_are_skipped() {
    let mut model = TinyModel::qwen3();
    let scalar = Tensor { shape: vec![1], values: vec![0.0] };
    model.tensors.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), scalar);
    let embedding = model.tensors["model.embed_tokens.weight"].clone();
    model.tensors.insert("lm_head.weight".into(), embedding); // The config ties the head.
    common::load(model.write().path(), lm_model::Device::Cpu);
}

#[test]
fn unrepresentable_weights_are_reported() {
    let mut model = TinyModel::qwen3();
    model.tensors.get_mut(QUERY).unwrap().values[5] = f32::NAN;
    let dir = model.write();
    let options = LoadOptions { quantization: Some(WeightFormat::Q8), ..LoadOptions::default() };
    let error = expect(load_error(dir.path(), &options), &[QUERY, "NaN"]);
    assert!(matches!(error, Error::Weight { .. }), "{error:?}");
}

fn check_shards(change: impl FnOnce(&mut Value, &Path), words: &[&str]) {
    let dir = TinyModel::llama().write_sharded();
    let path = dir.path().join("model.safetensors.index.json");
    let text = fs::read(&path).expect("the index was written");
    let mut index: Value = serde_json::from_slice(&text).expect("the index is JSON");
    change(&mut index, dir.path());
    fs::write(&path, index.to_string()).expect("the folder is writable");
    expect(load_error(dir.path(), &LoadOptions::default()), words);
}

#[test]
fn invalid_shard_indexes_are_rejected() {
    for outside in ["../a.safetensors", "/etc/passwd", "x/a.safetensors", "..", "", "c:\\a.safetensors"] {
        check_shards(
            |index, _| index["weight_map"][QUERY] = json!(outside),
            &["model.safetensors.index.json", QUERY, "inside the folder"],
        );
    }
    check_shards(|index, _| index["weight_map"][QUERY] = json!("c.safetensors"), &["c.safetensors"]);
    check_shards(|index, _| index["weight_map"][QUERY] = json!("a.safetensors"), &["a.safetensors", QUERY]);
    check_shards(
        |index, _| index["weight_map"]["extra"] = json!("a.safetensors"),
        &["a.safetensors", "extra"],
    );
    check_shards(|index, _| *index = json!({"weight_map": 3}), &["model.safetensors.index.json"]);
    check_shards(
        |_, dir| {
            fs::copy(dir.join("a.safetensors"), dir.join("b.safetensors")).unwrap();
        },
        &["both a.safetensors and b.safetensors"],
    );
}

#[test]
fn invalid_tokenizer_and_generation_files_are_reported() {
    let write =
        |name: &'static str, text: &'static [u8]| move |dir: &Path| fs::write(dir.join(name), text).unwrap();
    let model = TinyModel::qwen3();
    check(&model, write("tokenizer.json", b"{}"), &["tokenizer"]);
    check(
        &model,
        write("generation_config.json", b"{\"top_k\": \"many\"}"),
        &["generation_config.json", "many"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes changed, removed or inserted anywhere give a model or an error, never a panic or a hang.
    #[test]
    fn damaged_files_never_panic(
        name in prop::sample::select(vec!["config.json", "tokenizer.json", "model.safetensors"]),
        place in 0.0..1.0_f64,
        removed in 0..4_usize,
        inserted in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"0123456789-{}[]\",:e".to_vec())], 0..4),
    ) {
        static MODEL: LazyLock<TinyModel> = LazyLock::new(TinyModel::qwen3);
        let dir = MODEL.write();
        let path = dir.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        // Most of a safetensors file is weights; only its header can become invalid.
        let readable = if name == "model.safetensors" { 3000 } else { bytes.len() };
        let at = (readable as f64 * place) as usize;
        let end = bytes.len().min(at + removed);
        bytes.splice(at..end, inserted);
        fs::write(&path, bytes).unwrap();
        let loaded = ModelFolder::open(dir.path()).unwrap().load(&LoadOptions::default(), &mut |_| {});
        if let Err(error) = loaded {
            prop_assert!(!chain(&error).is_empty());
        }
    }
}

#[test]
fn shared_types_are_send_and_sync() {
    fn shared<T: Send + Sync + ?Sized>() {}
    shared::<dyn lm_model::CausalLm>();
    shared::<lm_tokenizer::Tokenizer>();
    shared::<lm_model::LoadedModel>();
    shared::<ModelFolder>();
    shared::<Error>();
}
