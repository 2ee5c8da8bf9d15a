//! GGUF files whose metadata or tensors are invalid for their architecture.

use std::fs;

use lm_formats::{FileBytes, GgufFile};
use lm_model::Error;

use crate::corpus::chain;
use crate::gguf::{check, load, testdata, value};

const GEMMA3N: &str = "gemma3n-tiny-bf16.gguf";
const GEMMA4: &str = "gemma4-tiny-bf16.gguf";
const GPT_OSS: &str = "gpt-oss-tiny-bf16.gguf";
const LFM2: &str = "lfm2-tiny-bf16.gguf";
const LFM2_MOE: &str = "lfm2-moe-tiny-bf16.gguf";
const QWEN35: &str = "qwen3_5-tiny-vision-bf16.gguf";

/// Replacement of one 32-bit number.
struct Bad {
    file: &'static str,
    place: Place,
    number: [u8; 4],
    says: &'static [&'static str],
}

enum Place {
    /// The value of a key.
    Key(&'static str),
    /// An element of the list under a key.
    Element(&'static str, usize),
    /// An element of a tensor.
    Tensor(&'static str, usize),
}

use Place::{Element, Key, Tensor};

const fn bad(file: &'static str, place: Place, number: u32, says: &'static [&'static str]) -> Bad {
    Bad { file, place, number: number.to_le_bytes(), says }
}

const fn float(file: &'static str, place: Place, number: f32, says: &'static [&'static str]) -> Bad {
    Bad { file, place, number: number.to_le_bytes(), says }
}

const SPARSITY: &str = "gemma3n.activation_sparsity_scale";
const SLIDING: &str = "sliding_window_pattern";

const TABLE: &[Bad] = &[
    // Lists must cover all layers.
    bad(GEMMA3N, Key("gemma3n.block_count"), 4, &[SLIDING, "a list of 5", "each of the 4 layers"]),
    bad(GEMMA4, Key("gemma4.block_count"), 7, &[SLIDING, "a list of 6", "each of the 7 layers"]),
    bad(LFM2, Key("lfm2.block_count"), 3, &["lfm2.attention.head_count_kv", "a list of 4"]),
    bad(QWEN35, Key("qwen35.block_count"), 4, &["qwen35.attention.recurrent_layers", "a list of 3"]),
    bad(GEMMA3N, Key("gemma3n.altup.num_inputs"), 0, &["altup_num_inputs", "0"]),
    bad(GEMMA3N, Key("gemma3n.altup.num_inputs"), u32::MAX, &["altup_num_inputs", "4294967295"]),
    bad(GEMMA3N, Key("gemma3n.altup.num_inputs"), 5, &["model.altup_projections"]),
    bad(GEMMA3N, Key("gemma3n.altup.active_idx"), 4, &["altup_active_idx", "4"]),
    bad(GEMMA3N, Key("gemma3n.attention.shared_kv_layers"), 5, &["num_kv_shared_layers", "5"]),
    bad(GEMMA3N, Key("gemma3n.embedding_length_per_layer_input"), 0, &["hidden_size_per_layer_input", "0"]),
    bad(GEMMA3N, Key("gemma3n.embedding_length_per_layer_input"), 9, &["embed_tokens_per_layer"]),
    float(GEMMA3N, Element(SPARSITY, 1), f32::NAN, &[SPARSITY, "NaN"]),
    float(GEMMA3N, Element(SPARSITY, 4), f32::INFINITY, &[SPARSITY, "inf"]),
    bad(GEMMA4, Key("gemma4.attention.key_length"), 18, &["gemma4.rope.dimension_count", "16"]),
    bad(GEMMA4, Key("gemma4.attention.key_length_swa"), 7, &["gemma4.rope.dimension_count_swa", "8"]),
    bad(GEMMA4, Key("gemma4.rope.dimension_count"), 8, &["gemma4.rope.dimension_count", "8"]),
    bad(GEMMA4, Key("gemma4.attention.head_count_kv"), 3, &["num_key_value_heads", "3"]),
    bad(GEMMA4, Key("gemma4.attention.head_count_kv"), 0, &["num_key_value_heads", "0"]),
    bad(
        GEMMA4,
        Key("gemma4.attention.shared_kv_layers"),
        u32::MAX,
        &["attention.shared_kv_layers", "4294967295"],
    ),
    bad(GEMMA4, Element("gemma4.feed_forward_length", 1), 49, &["gemma4.feed_forward_length", "49"]),
    bad(
        GEMMA4,
        Element("gemma4.feed_forward_length", 5),
        i32::MAX as u32,
        &["feed_forward_length", "2147483647"],
    ),
    bad(GEMMA4, Key("tokenizer.ggml.padding_token_id"), 300, &["pad_token_id", "300"]),
    float(GEMMA4, Tensor("rope_freqs.weight", 0), 0.5, &["rope_freqs.weight", "ones, then 1e30"]),
    float(GEMMA4, Tensor("rope_freqs.weight", 7), f32::NAN, &["rope_freqs.weight", "ones, then 1e30"]),
    bad(GPT_OSS, Key("gpt-oss.expert_used_count"), 9, &["num_experts_per_tok", "9"]),
    bad(GPT_OSS, Key("gpt-oss.expert_count"), u32::MAX, &["num_local_experts", "4294967295"]),
    bad(GPT_OSS, Key("gpt-oss.expert_feed_forward_length"), 24, &["gate_proj", "[192, 32]"]),
    bad(GPT_OSS, Key("gpt-oss.attention.sliding_window"), 0, &["sliding_window", "0"]),
    float(GPT_OSS, Key("gpt-oss.rope.scaling.factor"), f32::NAN, &["gpt-oss.rope.scaling.factor"]),
    bad(
        LFM2,
        Element("lfm2.attention.head_count_kv", 0),
        3,
        &["lfm2.attention.head_count_kv", "2", "3, or 0"],
    ),
    bad(LFM2_MOE, Key("lfm2moe.expert_gating_func"), 1, &["lfm2moe.expert_gating_func", "2, a sigmoid"]),
    bad(LFM2, Element("lfm2.attention.head_count_kv", 3), 2, &["self_attn"]),
    bad(LFM2, Key("lfm2.shortconv.l_cache"), 1, &["conv_L_cache", "1"]),
    bad(LFM2, Key("lfm2.shortconv.l_cache"), u32::MAX, &["conv_L_cache", "4294967295"]),
    bad(QWEN35, Key("qwen35.ssm.time_step_rank"), 0, &["qwen35.ssm.time_step_rank", "0"]),
    bad(QWEN35, Key("qwen35.ssm.time_step_rank"), 5, &["qwen35.ssm.time_step_rank", "5"]),
    bad(QWEN35, Key("qwen35.ssm.group_count"), 2, &["linear_num_key_heads", "2"]),
    bad(QWEN35, Key("qwen35.ssm.inner_size"), u32::MAX, &["linear_value_head_dim"]),
    bad(QWEN35, Key("qwen35.ssm.conv_kernel"), 0, &["linear_conv_kernel_dim", "0"]),
    bad(QWEN35, Key("qwen35.nextn_predict_layers"), 3, &["qwen35.block_count", "3"]),
    float(QWEN35, Tensor("blk.0.ssm_a", 2), 1.0, &["A_log", "1", "below 0"]),
    float(QWEN35, Tensor("blk.0.ssm_a", 0), f32::NAN, &["A_log", "NaN", "below 0"]),
];

impl Bad {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = fs::read(testdata(self.file)).unwrap();
        let place = match self.place {
            Key(key) => value(&bytes, key),
            // The type and number of the elements precede them.
            Element(key, index) => value(&bytes, key) + 4 + 8 + 4 * index,
            Tensor(name, index) => {
                let file = GgufFile::read("good", FileBytes::Owned(bytes.clone().into())).unwrap();
                file.tensors().iter().find(|tensor| tensor.name == name).unwrap().range.start + 4 * index
            }
        };
        bytes[place..place + 4].copy_from_slice(&self.number);
        bytes
    }
}

#[test]
fn invalid_architecture_settings_are_reported() {
    for file in [GEMMA3N, GEMMA4, GPT_OSS, LFM2, LFM2_MOE, QWEN35] {
        load(&fs::read(testdata(file)).unwrap()).unwrap();
    }
    let said =
        TABLE.iter().map(|bad| load(&bad.bytes()).map_or_else(|error| chain(&error), |()| "it loads".into()));
    let wrong: Vec<_> = TABLE
        .iter()
        .zip(said)
        .filter(|(bad, said)| !bad.says.iter().all(|word| said.contains(word)))
        .map(|(bad, said)| format!("{}: {said:?}, not {:?}", bad.file, bad.says))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn missing_tensor_of_settings_is_rejected() {
    let mut bytes = fs::read(testdata(GEMMA4)).unwrap();
    let name = bytes.windows(10).position(|window| window == b"rope_freqs").unwrap();
    bytes[name..name + 10].copy_from_slice(b"rope_other");
    let error = check(&bytes, &["rope_freqs.weight"]);
    assert!(matches!(&error, Error::Format(lm_formats::Error::MissingTensor { .. })), "{error:?}");
}
