//! `config.json`: sizes whose products overflow, lists of the wrong length, meaningless values.

use serde_json::{Value, json};

use crate::corpus::{Bad, Files, check};

/// Maximum size.
const LARGE: usize = 1 << 24;

fn set_all(files: &mut Files, keys: &[&str], value: usize) {
    keys.iter().for_each(|key| files.set(key, json!(value)));
}

fn raw(files: &mut Files, text: impl Into<Vec<u8>>) {
    *files.bytes("config.json") = text.into();
}

#[rustfmt::skip]
const DENSE: &[Bad] = &[
    Bad { what: "no byte", spoil: |f| raw(f, ""), error: "Json", says: &["config.json"] },
    Bad { what: "no JSON", spoil: |f| raw(f, "model"), error: "Json", says: &["config.json"] },
    Bad { what: "no UTF-8", spoil: |f| raw(f, b"{\"model_type\": \"\xff\"}"), error: "Json", says: &["config.json"] },
    Bad { what: "a list", spoil: |f| raw(f, "[]"), error: "Json", says: &["config.json"] },
    Bad { what: "nothing but null", spoil: |f| raw(f, "null"), error: "Json", says: &["config.json"] },
    Bad { what: "no keys", spoil: |f| raw(f, "{}"), error: "Json", says: &["model_type"] },
    Bad { what: "brackets without end", spoil: |f| raw(f, "[".repeat(1 << 20)), error: "Json", says: &["config.json"] },
    Bad { what: "a key with a million lists in lists", spoil: |f| raw(f, format!("{{\"a\":{}", "[".repeat(1 << 20))), error: "Json", says: &["config.json"] },
    Bad { what: "more text than settings can have", spoil: |f| raw(f, " ".repeat(17 << 20)), error: "FileTooLarge", says: &["config.json"] },
    Bad { what: "a model type that is a number", spoil: |f| f.set("model_type", json!(1)), error: "Json", says: &["config.json"] },
    Bad { what: "a model type of a million letters", spoil: |f| f.set("model_type", json!("x".repeat(1 << 20))), error: "UnsupportedValue", says: &["model_type"] },
    Bad { what: "no layers", spoil: |f| f.set("num_hidden_layers", json!(0)), error: "InvalidValue", says: &["num_hidden_layers", "0", "1 to 4096"] },
    Bad { what: "a negative number of layers", spoil: |f| f.set("num_hidden_layers", json!(-1)), error: "Json", says: &["config.json"] },
    Bad { what: "half a layer", spoil: |f| f.set("num_hidden_layers", json!(1.5)), error: "Json", says: &["config.json"] },
    Bad { what: "more layers than fit", spoil: |f| f.set("num_hidden_layers", json!(u64::MAX)), error: "InvalidValue", says: &["num_hidden_layers"] },
    Bad { what: "layers that the file has not", spoil: |f| f.set("num_hidden_layers", json!(4096)), error: "MissingTensor", says: &["model.layers.3."] },
    Bad { what: "every width at its most", spoil: |f| set_all(f, &["hidden_size", "intermediate_size", "vocab_size"], LARGE), error: "TensorShape", says: &["[16777216, 16777216]"] },
    Bad { what: "heads at their most", spoil: |f| set_all(f, &["num_attention_heads", "num_key_value_heads", "head_dim"], LARGE), error: "InvalidValue", says: &["num_attention_heads", "head_dim"] },
    Bad { what: "everything at its most", spoil: |f| { set_all(f, &["hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim"], LARGE); f.set("num_hidden_layers", json!(4096)) }, error: "InvalidValue", says: &["num_attention_heads"] },
    Bad { what: "a head without width", spoil: |f| f.set("head_dim", json!(0)), error: "InvalidValue", says: &["head_dim", "0"] },
    Bad { what: "no positions", spoil: |f| f.set("max_position_embeddings", json!(0)), error: "InvalidValue", says: &["max_position_embeddings"] },
    Bad { what: "more positions than are counted", spoil: |f| f.set("max_position_embeddings", json!(1_u64 << 40)), error: "InvalidValue", says: &["max_position_embeddings"] },
    Bad { what: "a number beyond floats", spoil: |f| f.set("rms_norm_eps", serde_json::from_str("1e39").unwrap()), error: "InvalidValue", says: &["rms_norm_eps"] },
    Bad { what: "an epsilon of nothing", spoil: |f| f.set("rms_norm_eps", json!(0)), error: "InvalidValue", says: &["rms_norm_eps", "0"] },
    Bad { what: "a negative base", spoil: |f| f.set("rope_theta", json!(-1)), error: "InvalidValue", says: &["rope_theta", "-1"] },
    Bad { what: "a text model that is a list", spoil: |f| f.set("text_config", json!([])), error: "InvalidValue", says: &["text_config", "an object"] },
    Bad { what: "a text model of another kind", spoil: |f| f.set("text_config", json!({"model_type": "x"})), error: "UnsupportedValue", says: &["model_type", "x"] },
    Bad { what: "a description of quants that is a list", spoil: |f| f.set("quantization_config", json!([])), error: "UnsupportedValue", says: &["quantization_config"] },
    Bad { what: "bitsandbytes", spoil: |f| f.set("quantization_config", json!({"quant_method": "bitsandbytes", "load_in_4bit": true})), error: "UnsupportedValue", says: &["quantization_config.quant_method", "bitsandbytes"] },
    Bad { what: "a method of a million letters", spoil: |f| f.set("quantization_config", json!({"quant_method": "x".repeat(1 << 20)})), error: "UnsupportedValue", says: &["quantization_config.quant_method"] },
    Bad { what: "end ids that are texts", spoil: |f| { f.0.remove("generation_config.json"); f.set("eos_token_id", json!(["</s>"])) }, error: "Json", says: &["config.json"] },
];

#[test]
fn invalid_dense_configs_are_rejected() {
    check(&Files::of("models/qwen3-tiny"), DENSE);
}

fn experts(files: &mut Files, value: Value) {
    files.set("num_experts", value);
}

#[rustfmt::skip]
const EXPERTS: &[Bad] = &[
    Bad { what: "no experts", spoil: |f| experts(f, json!(0)), error: "InvalidValue", says: &["num_experts", "0"] },
    Bad { what: "more experts than there are", spoil: |f| experts(f, json!(65_536)), error: "TensorShape", says: &["mlp.gate.weight", "65536"] },
    Bad { what: "more experts than any model", spoil: |f| experts(f, json!(1_u64 << 32)), error: "InvalidValue", says: &["num_experts"] },
    Bad { what: "many experts in many layers", spoil: |f| { experts(f, json!(65_536)); f.set("num_hidden_layers", json!(4096)) }, error: "TensorShape", says: &["mlp.gate.weight"] },
    Bad { what: "large experts in many layers", spoil: |f| { experts(f, json!(65_536)); set_all(f, &["moe_intermediate_size", "hidden_size"], LARGE); f.set("num_hidden_layers", json!(4096)) }, error: "InvalidValue", says: &["moe_intermediate_size"] },
    Bad { what: "more chosen than there are", spoil: |f| f.set("num_experts_per_tok", json!(1000)), error: "InvalidValue", says: &["num_experts_per_tok", "1000"] },
    Bad { what: "none chosen", spoil: |f| f.set("num_experts_per_tok", json!(0)), error: "InvalidValue", says: &["num_experts_per_tok", "0"] },
    Bad { what: "experts of another width", spoil: |f| f.set("moe_intermediate_size", json!(17)), error: "TensorShape", says: &["mlp.experts.0.", "[17, 32]"] },
    Bad { what: "experts of no width", spoil: |f| f.set("moe_intermediate_size", json!(0)), error: "InvalidValue", says: &["moe_intermediate_size", "0"] },
    Bad { what: "a step of nothing", spoil: |f| f.set("decoder_sparse_step", json!(0)), error: "InvalidValue", says: &["decoder_sparse_step"] },
];

#[test]
fn invalid_moe_configs_are_rejected() {
    check(&Files::of("models/qwen3-moe-tiny"), EXPERTS);
}

#[rustfmt::skip]
const BESIDE: &[Bad] = &[
    Bad { what: "no number of experts", spoil: |f| experts(f, json!(null)), error: "InvalidValue", says: &["num_experts", "absent"] },
    Bad { what: "more experts than there are", spoil: |f| experts(f, json!(65_536)), error: "TensorShape", says: &["router.proj.weight", "65536"] },
    Bad { what: "more chosen than there are", spoil: |f| f.set("top_k_experts", json!(7)), error: "InvalidValue", says: &["top_k_experts", "7"] },
    Bad { what: "experts of another width", spoil: |f| f.set("moe_intermediate_size", json!(32)), error: "TensorShape", says: &["experts.gate_up_proj", "[6, 32, 32]"] },
    Bad { what: "experts that are not wanted", spoil: |f| f.set("enable_moe_block", json!(false)), error: "UnexpectedTensor", says: &["model.layers.0.", "gemma4_text"] },
    Bad { what: "a switch that is a number", spoil: |f| f.set("enable_moe_block", json!(1)), error: "Json", says: &["config.json"] },
];

#[test]
fn invalid_mixed_moe_configs_are_rejected() {
    check(&Files::of("models/gemma4-tiny-experts"), BESIDE);
}

#[rustfmt::skip]
const HYBRID: &[Bad] = &[
    Bad { what: "states at their most", spoil: |f| set_all(f, &["linear_num_value_heads", "linear_num_key_heads", "linear_value_head_dim", "linear_key_head_dim"], LARGE), error: "InvalidValue", says: &["linear_"] },
    Bad { what: "a kernel at its most", spoil: |f| f.set("linear_conv_kernel_dim", json!(LARGE)), error: "InvalidValue", says: &["linear_conv_kernel_dim"] },
    Bad { what: "layers of an unknown kind", spoil: |f| f.set("layer_types", json!(["x", "x", "x"])), error: "UnsupportedValue", says: &["layer_types", "x"] },
    Bad { what: "too few kinds of layers", spoil: |f| f.set("layer_types", json!(["full_attention"])), error: "InvalidValue", says: &["layer_types"] },
    Bad { what: "heads that do not divide", spoil: |f| f.set("linear_num_key_heads", json!(3)), error: "InvalidValue", says: &["linear_num_key_heads", "3"] },
];

#[test]
fn invalid_hybrid_configs_are_rejected() {
    check(&Files::of("models/qwen3_5-tiny"), HYBRID);
}

#[rustfmt::skip]
const EMBEDDED: &[Bad] = &[
    Bad { what: "per-layer rows at their most", spoil: |f| { set_all(f, &["hidden_size_per_layer_input", "vocab_size_per_layer_input"], LARGE); f.set("num_hidden_layers", json!(4096)) }, error: "InvalidValue", says: &["layer_types"] },
    Bad { what: "per-layer rows without bound", spoil: |f| f.set("hidden_size_per_layer_input", json!(u64::MAX)), error: "InvalidValue", says: &["hidden_size_per_layer_input"] },
    Bad { what: "all layers sharing what none has", spoil: |f| f.set("num_kv_shared_layers", json!(4096)), error: "InvalidValue", says: &["num_kv_shared_layers"] },
    Bad { what: "a padding that is not a token", spoil: |f| f.set("pad_token_id", json!(1 << 30)), error: "InvalidValue", says: &["pad_token_id"] },
];

#[test]
fn invalid_per_layer_embedding_configs_are_rejected() {
    check(&Files::of("models/gemma4-tiny"), EMBEDDED);
}
