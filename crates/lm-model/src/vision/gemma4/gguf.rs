//! `mmproj` files of Gemma 4.

use lm_formats::Result;
use serde_json::{Value, json};

use crate::gguf::{Clip, GgufProjector, Numbering, PatchOrder, ProjectorConfig, TensorList};

pub(super) const GGUF: GgufProjector = GgufProjector {
    projector_type: "gemma4v",
    text_models: &["gemma4"],
    keys: &[
        ("attention.head_count", "num_attention_heads"),
        ("attention.layer_norm_epsilon", "rms_norm_eps"),
        ("block_count", "num_hidden_layers"),
        ("embedding_length", "hidden_size"),
        ("feed_forward_length", "intermediate_size"),
        ("patch_size", "patch_size"),
    ],
    harmless: &[("image_size", "images keep their shape")],
    activation: None, // Files have no key for it.
    read: read_gguf,
    tensors: &[
        ("mm.input_projection", "model.embed_vision.embedding_projection"),
        ("v.position_embd.weight", "model.vision_tower.patch_embedder.position_embedding_table"),
        ("v.std_bias", "model.vision_tower.std_bias"),
        ("v.std_scale", "model.vision_tower.std_scale"),
    ],
    lists: &[TensorList {
        file: "v.blk.",
        model: "model.vision_tower.encoder.layers.",
        numbering: Numbering::Same,
        names: &[
            ("attn_k", "self_attn.k_proj"),
            ("attn_k.weight", "self_attn.k_proj.linear.weight"),
            ("attn_k_norm", "self_attn.k_norm"),
            ("attn_out", "self_attn.o_proj"),
            ("attn_out.weight", "self_attn.o_proj.linear.weight"),
            ("attn_post_norm", "post_attention_layernorm"),
            ("attn_q", "self_attn.q_proj"),
            ("attn_q.weight", "self_attn.q_proj.linear.weight"),
            ("attn_q_norm", "self_attn.q_norm"),
            ("attn_v", "self_attn.v_proj"),
            ("attn_v.weight", "self_attn.v_proj.linear.weight"),
            ("ffn_down", "mlp.down_proj"),
            ("ffn_down.weight", "mlp.down_proj.linear.weight"),
            ("ffn_gate", "mlp.gate_proj"),
            ("ffn_gate.weight", "mlp.gate_proj.linear.weight"),
            ("ffn_post_norm", "post_feedforward_layernorm"),
            ("ffn_up", "mlp.up_proj"),
            ("ffn_up.weight", "mlp.up_proj.linear.weight"),
            ("ln1", "input_layernorm"),
            ("ln2", "pre_feedforward_layernorm"),
        ],
        joined: None,
    }],
    values: &[],
    patches: ("model.vision_tower.patch_embedder.input_proj.weight", PatchOrder::ChannelsLast),
};

/// Widths of the decoders of E2B and E4B, whose rows of images are causal.
const CAUSAL_WIDTHS: [usize; 2] = [1536, 2560];

fn read_gguf(clip: &Clip<'_>, config: &mut ProjectorConfig) -> Result<()> {
    const HEADS: &str = "attention.head_count";
    let (width, heads) = (clip.required_size("embedding_length")?, clip.required_size(HEADS)?);
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(clip.invalid(HEADS, heads, format!("a divisor of the width {width}")));
    }
    let mut put = |key: &str, value: Value| drop(config.vision.insert(key.into(), value));
    put("head_dim", (width / heads).into());
    put("num_key_value_heads", heads.into());
    put("pooling_kernel_size", clip.size("projector.scale_factor")?.unwrap_or(3).into());
    let table = clip.tensor("v.position_embd.weight").and_then(|table| table.shape.get(1)).copied();
    put("position_embedding_size", table.unwrap_or(0).into());
    put("use_clipped_linears", clip.tensor("v.blk.0.attn_q.input_max").is_some().into());
    put("standardize", clip.tensor("v.std_bias").is_some().into());
    for (key, expected) in [("image_mean", [0.0; 3]), ("image_std", [1.0; 3])] {
        if let Some(other) = clip.channels(key)?.filter(|numbers| *numbers != expected) {
            return Err(clip.invalid(key, format!("{other:?}"), format!("{expected:?}")));
        }
    }
    if !CAUSAL_WIDTHS.contains(&clip.required_size("projection_dim")?) {
        config.outer.insert("text_config".into(), json!({"use_bidirectional_attention": "vision"}));
    }
    Ok(())
}
