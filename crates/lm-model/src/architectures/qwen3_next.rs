//! Qwen3-Next: the delta nets and gated attention of Qwen3.5, with experts and a gated shared expert. Source:
//! `Qwen3NextForCausalLM` of transformers 5.23; `config.json` of Qwen/Qwen3-Next-80B-A3B-Instruct.

use lm_formats::Result;

use super::{Architecture, BASE, qwen2_moe, qwen3_5, qwen3_moe};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SHARED_EXPERT, rope};
use crate::spec::{DecoderSpec, Mixer, RopeSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3_next"],
    goldens: &["qwen3-next-tiny", "qwen3-next-tiny-mixed", "qwen3-next-tiny-odd"],
    spec,
    weight_name: qwen3_5::weight_name,
    locations,
    ignored_prefixes: &["mtp."],
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "partial_rotary_factor": 0.25, "full_attention_interval": 4, "attn_output_gate": true,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_head_order": "grouped",
        "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512, "norm_topk_prob": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    name: "qwen3next",
    model_type: "qwen3_next",
    keys: &[
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
        ("full_attention_interval", "full_attention_interval"),
        ("ssm.conv_kernel", "linear_conv_kernel_dim"),
        ("ssm.group_count", "linear_num_key_heads"),
        ("ssm.state_size", "linear_key_head_dim"),
        ("ssm.time_step_rank", "linear_num_value_heads"),
    ],
    rope: rope::of_all_layers,
    read: |model, config| {
        qwen3_5::read_gguf(model, config)?;
        config.insert("linear_head_order".to_owned(), "grouped".into());
        Ok(())
    },
    tensors: &[
        EXPERTS,
        SHARED_EXPERT,
        qwen3_5::TENSORS,
        &[("ffn_gate_inp", "mlp.gate"), ("ssm_ba", "linear_attn.in_proj_ba")],
    ],
    ..qwen3_5::GGUF
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (key, rope) = config.rope_parameters();
    let rope = RopeSpec::from_parameters(key, &rope, config.head_dim()?, config.max_position_embeddings)?;
    let mut spec = qwen3_5::hybrid(config, rope)?;
    qwen2_moe::add_experts(config, &mut spec)?;
    Ok(spec)
}

/// The projections of a delta net are two tensors with the rows of each key head together: its query and key,
/// and the values and gates of its value heads; and their `b` (write strengths) and `a` (time steps).
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, of_layer) = param else { return Vec::new() };
    let Mixer::DeltaNet(net) = spec.layers[layer].mixer else { return qwen3_moe::locations(spec, param) };
    let (heads, key) = (net.heads.num_key_heads, net.heads.key_dim);
    let of_key_head = net.heads.num_value_heads / heads;
    let value = of_key_head * net.heads.value_dim;
    let parts = |tensor: &str, sizes: &[usize], wanted: &[usize]| {
        let whole: usize = sizes.iter().sum();
        let rows = wanted.iter().flat_map(|&part| {
            let first = sizes[..part].iter().sum::<usize>();
            (0..heads).map(move |head| head * whole + first..head * whole + first + sizes[part])
        });
        let name = format!("model.layers.{layer}.linear_attn.{tensor}.weight");
        vec![TensorLocation::parts(&name, rows, heads * whole)]
    };
    let (qkvz, ba) = ([key, key, value, value], [of_key_head; 2]);
    match of_layer {
        LayerParam::DeltaQkv(Piece::Weight) => parts("in_proj_qkvz", &qkvz, &[0, 1, 2]),
        LayerParam::DeltaGate(Piece::Weight) => parts("in_proj_qkvz", &qkvz, &[3]),
        LayerParam::DeltaBeta(Piece::Weight) => parts("in_proj_ba", &ba, &[0]),
        LayerParam::DeltaA(Piece::Weight) => parts("in_proj_ba", &ba, &[1]),
        _ => qwen3_moe::locations(spec, param),
    }
}
