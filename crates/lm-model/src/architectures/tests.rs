//! Rows of the registry, their names and the keys they complete.

use serde_json::json;

use super::*;

#[test]
fn rows_are_sorted_and_found_by_every_name() {
    let names: Vec<_> = ALL_ARCHITECTURES.iter().map(|architecture| architecture.model_types[0]).collect();
    assert!(names.is_sorted(), "{names:?}");
    for architecture in ALL_ARCHITECTURES {
        for name in architecture.model_types {
            assert_eq!(find(name).unwrap().goldens, architecture.goldens);
        }
    }
}

#[test]
fn text_part_of_a_vision_model_is_written() {
    for (model_type, name) in [
        ("qwen2", "qwen2"),
        ("qwen2_vl", "qwen2vl"),
        ("qwen2_vl_text", "qwen2vl"),
        ("qwen2_5_vl", "qwen2vl"),
        ("qwen2_5_vl_text", "qwen2vl"),
        ("qwen3", "qwen3"),
        ("qwen3_vl_text", "qwen3vl"),
    ] {
        assert_eq!(gguf_of(model_type).expect(model_type).name, name, "{model_type}");
    }
}

#[test]
fn unknown_architecture_lists_the_known() {
    let error = find("gptj").unwrap_err().to_string();
    let known = error.strip_prefix("config.json: `model_type` is gptj, supported: ").expect(&error);
    for architecture in ALL_ARCHITECTURES {
        assert!(architecture.model_types.iter().all(|name| known.contains(name)), "{error}");
    }
}

#[test]
fn gguf_rows_match_their_architecture() {
    for row in gguf_rows() {
        let rows = find(row.model_type).unwrap().gguf;
        assert!(rows.iter().any(|own| own.name == row.name), "{}", row.name);
    }
}

fn spec(model_type: &str, more: Value) -> DecoderSpec {
    let mut keys = json!({
        "model_type": model_type, "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
        "layers_block_type": ["mamba", "mamba", "mamba", "mamba"],
    });
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config = config(keys.as_object().unwrap().clone()).unwrap();
    (find(model_type).unwrap().spec)(&config).unwrap()
}

#[test]
fn absent_keys_have_the_defaults_of_the_reference() {
    let llama3 = json!({
        "rope_type": "llama3", "rope_theta": 12e6, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    });
    for (model_type, key, value) in [
        ("apertus", "rope_parameters", llama3),
        ("deepseek_v3", "first_k_dense_replace", json!(3)),
        ("granitemoehybrid", "position_embedding_type", json!("nope")),
        // All elements of a head, 128.
        ("minimax_m2", "rotary_dim", json!(128)),
        ("nemotron_h", "n_groups", json!(8)),
    ] {
        assert_eq!(spec(model_type, json!({})), spec(model_type, json!({key: value})), "{model_type}");
    }
}

#[test]
fn rope_of_hunyuan_without_a_factor_is_not_stretched() {
    let rope = |more: Value| {
        let mut rope = json!({"rope_type": "dynamic", "rope_theta": 5e3, "factor": 2.0});
        rope.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec("hunyuan_v1_dense", json!({"rope_parameters": rope}))
    };
    assert_eq!(rope(json!({"alpha": 0})), rope(json!({})));
}

#[test]
fn lists_of_layers_determine_their_number() {
    let layers = |more: Value| {
        let mut keys = json!({
            "model_type": "nemotron_h", "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96,
            "num_attention_heads": 8,
        });
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(keys.as_object().unwrap().clone()).unwrap().num_hidden_layers
    };
    assert_eq!(layers(json!({"layers_block_type": ["mamba", "mlp"], "hybrid_override_pattern": "M*-"})), 2);
    assert_eq!(layers(json!({"hybrid_override_pattern": "M*-M-", "num_hidden_layers": 4})), 5);
    assert_eq!(layers(json!({"num_hidden_layers": 3})), 3);
}

#[test]
fn sizes_under_other_names_are_read() {
    let keys = json!({
        "model_type": "gpt2", "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": null, "n_positions": 40,
        "hidden_size": 25,
    });
    let config = config(keys.as_object().unwrap().clone()).unwrap();
    let sizes = [config.hidden_size, config.num_hidden_layers, config.num_attention_heads];
    assert_eq!(sizes, [24, 2, 3]);
    assert_eq!([config.intermediate_size, config.max_position_embeddings], [96, 40]);
}

#[test]
fn defaults_are_objects() {
    for architecture in ALL_ARCHITECTURES {
        architecture.default_keys().unwrap();
    }
}
