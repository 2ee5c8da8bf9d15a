//! Value types that GGUF readers expect under a key, regardless of the number's form in config.json.

use lm_formats::GgufEntry;
use serde_json::Value;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyType {
    Bool,
    Float,
    Size,
    Text,
}

/// Keys of settings, without the architecture prefix, in alphabetical order.
///
/// # Source
/// The methods `add_…` of the `GGUFWriter` of the package `gguf` 0.19.
const TYPES: &[(&str, KeyType)] = &[
    ("altup.active_idx", KeyType::Size),
    ("altup.num_inputs", KeyType::Size),
    ("attention.head_count", KeyType::Size),
    ("attention.head_count_kv", KeyType::Size),
    ("attention.key_length_swa", KeyType::Size),
    ("attention.kv_lora_rank", KeyType::Size),
    ("attention.layer_norm_epsilon", KeyType::Float),
    ("attention.layer_norm_rms_epsilon", KeyType::Float),
    ("attention.q_lora_rank", KeyType::Size),
    ("attention.scale", KeyType::Float),
    ("attention.shared_kv_layers", KeyType::Size),
    ("attention.sliding_window", KeyType::Size),
    ("attention.sliding_window_pattern", KeyType::Size),
    ("attention.temperature_scale", KeyType::Float),
    ("attention.value_length_mla", KeyType::Size),
    ("attn_logit_softcapping", KeyType::Float),
    ("context_length", KeyType::Size),
    ("embedding_length", KeyType::Size),
    ("embedding_length_per_layer_input", KeyType::Size),
    ("embedding_scale", KeyType::Float),
    ("expert_count", KeyType::Size),
    ("expert_feed_forward_length", KeyType::Size),
    ("expert_group_count", KeyType::Size),
    ("expert_group_used_count", KeyType::Size),
    ("expert_shared_count", KeyType::Size),
    ("expert_shared_feed_forward_length", KeyType::Size),
    ("expert_used_count", KeyType::Size),
    ("expert_weights_norm", KeyType::Bool),
    ("expert_weights_scale", KeyType::Float),
    ("feed_forward_length", KeyType::Size),
    ("final_logit_softcapping", KeyType::Float),
    ("full_attention_interval", KeyType::Size),
    ("hidden_activation", KeyType::Text),
    ("interleave_moe_layer_step", KeyType::Size),
    ("leading_dense_block_count", KeyType::Size),
    ("logit_scale", KeyType::Float),
    ("residual_scale", KeyType::Float),
    ("rope.dimension_count", KeyType::Size),
    ("rope.freq_base", KeyType::Float),
    ("rope.freq_base_swa", KeyType::Float),
    ("rope.scaling.original_context_length", KeyType::Size),
    ("shortconv.l_cache", KeyType::Size),
    ("ssm.conv_kernel", KeyType::Size),
    ("ssm.group_count", KeyType::Size),
    ("ssm.state_size", KeyType::Size),
    ("ssm.time_step_rank", KeyType::Size),
];

/// Converts a config.json value to the type of `key`; `None` if it has another kind.
pub(super) fn written(key: &str, value: &Value) -> Option<GgufEntry> {
    let ty = TYPES.iter().find(|row| row.0 == key)?.1;
    let size = |value: &Value| {
        let whole = value
            .as_u64()
            .or_else(|| value.as_f64().filter(|x| x.fract() == 0.0 && *x >= 0.0).map(|x| x as u64));
        whole.and_then(|size| u32::try_from(size).ok())
    };
    match (ty, value) {
        (KeyType::Bool, Value::Bool(value)) => Some(GgufEntry::Bool(*value)),
        (KeyType::Text, Value::String(value)) => Some(GgufEntry::Text(value.clone())),
        (KeyType::Float, Value::Number(number)) => Some(GgufEntry::Float(number.as_f64()? as f32)),
        (KeyType::Float, Value::Array(list)) => {
            let floats = list.iter().map(|value| value.as_f64().map(|x| x as f32));
            floats.collect::<Option<_>>().map(GgufEntry::Floats)
        }
        (KeyType::Size, Value::Number(_)) => size(value).map(GgufEntry::Size),
        (KeyType::Size, Value::Array(list)) => {
            list.iter().map(size).collect::<Option<_>>().map(GgufEntry::Sizes)
        }
        _ => None,
    }
}

/// Returns true if the type of a key is known.
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_known(key: &str) -> bool {
        TYPES.iter().any(|row| row.0 == key)
    }

    #[test]
    fn rows_are_sorted() {
        assert!(TYPES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn numbers_use_the_type_of_their_key() {
        assert_eq!(written("rope.freq_base", &json!(10_000)), Some(GgufEntry::Float(1e4)));
        assert_eq!(written("context_length", &json!(32.0)), Some(GgufEntry::Size(32)));
        assert_eq!(written("hidden_activation", &json!("gelu")), Some(GgufEntry::Text("gelu".into())));
        assert_eq!(written("hidden_activation", &json!(3)), None);
        assert_eq!(written("feed_forward_length", &json!([8, 16])), Some(GgufEntry::Sizes(vec![8, 16])));
        for value in [json!(-1), json!(1.5), json!(1_u64 << 32), json!("8"), json!(true), json!([1, "a"])] {
            assert_eq!(written("context_length", &value), None, "{value}");
        }
    }

    /// Writers need it: readers reject a value of another type.
    #[test]
    fn keys_of_all_architectures_have_a_type() {
        let keys = crate::architectures::gguf_rows().flat_map(|row| row.keys).chain(crate::gguf::SHARED);
        let unknown: Vec<_> = keys.map(|row| row.0).filter(|key| !is_known(key)).collect();
        assert!(unknown.is_empty(), "no row: {unknown:?}");
    }
}
