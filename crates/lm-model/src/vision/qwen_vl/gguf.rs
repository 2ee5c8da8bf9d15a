//! `mmproj` files of Qwen's vision models.

use lm_formats::Result;
use serde_json::json;

use crate::encoders::settings::MAX_LAYERS;
use crate::gguf::{Clip, GgufProjector, Numbering, PatchOrder, ProjectorConfig, TensorList, TensorNames};

const KEYS: TensorNames = &[
    ("attention.head_count", "num_heads"),
    ("block_count", "depth"),
    ("patch_size", "patch_size"),
    ("projection_dim", "out_hidden_size"),
    ("spatial_merge_size", "spatial_merge_size"),
];
const EPSILON: (&str, &str) = ("attention.layer_norm_epsilon", "the decoder's; towers have 1e-6");
const WIDTH: (&str, &str) = ("feed_forward_length", "the tensors have it; of Qwen2-VL it is the decoder's");
const SIDE: (&str, &str) = ("image_size", "images keep their shape");

/// Blocks of Qwen2-VL and Qwen2.5-VL, whose queries, keys and values are apart in files.
const BLOCKS: TensorList = TensorList {
    file: "v.blk.",
    model: "visual.blocks.",
    numbering: Numbering::Same,
    names: &[
        ("attn_k", "attn.k"),
        ("attn_out", "attn.proj"),
        ("attn_q", "attn.q"),
        ("attn_v", "attn.v"),
        ("ffn_down", "mlp.fc2"),
        ("ffn_up", "mlp.fc1"),
        ("ln1", "norm1"),
        ("ln2", "norm2"),
    ],
    joined: Some(("attn.qkv", ["attn_q", "attn_k", "attn_v"])),
};

const QWEN2_5_BLOCKS: TensorList = TensorList {
    names: &[
        ("attn_k", "attn.k"),
        ("attn_out", "attn.proj"),
        ("attn_q", "attn.q"),
        ("attn_v", "attn.v"),
        ("ffn_down", "mlp.down_proj"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ln1", "norm1"),
        ("ln2", "norm2"),
    ],
    ..BLOCKS
};

const QWEN3_BLOCKS: TensorList = TensorList {
    names: &[
        ("attn_out", "attn.proj"),
        ("attn_qkv", "attn.qkv"),
        ("ffn_down", "mlp.linear_fc2"),
        ("ffn_up", "mlp.linear_fc1"),
        ("ln1", "norm1"),
        ("ln2", "norm2"),
    ],
    joined: None,
    ..BLOCKS
};

/// Mergers for deeper layers, numbered by the tower's layers.
const DEEP: TensorList = TensorList {
    file: "v.deepstack.",
    model: "visual.deepstack_merger_list.",
    numbering: Numbering::Places,
    names: &[("fc1", "linear_fc1"), ("fc2", "linear_fc2"), ("norm", "norm")],
    joined: None,
};

pub(super) const QWEN2: GgufProjector = GgufProjector {
    projector_type: "qwen2vl_merger",
    text_models: &["qwen2vl"],
    keys: KEYS,
    harmless: &[EPSILON, WIDTH, SIDE],
    activation: Some("hidden_act"),
    read: |clip, config| {
        config.vision.insert("embed_dim".into(), clip.required_size("embedding_length")?.into());
        read(clip, config, &PIXELS_OF_QWEN2)
    },
    tensors: &[
        ("mm.0", "visual.merger.mlp.0"),
        ("mm.2", "visual.merger.mlp.2"),
        ("v.post_ln", "visual.merger.ln_q"),
    ],
    lists: &[BLOCKS],
    values: &[],
    patches: ("visual.patch_embed.proj.weight", PatchOrder::Frames),
};

pub(super) const QWEN2_5: GgufProjector = GgufProjector {
    projector_type: "qwen2.5vl_merger",
    read: |clip, config| {
        config.vision.insert("hidden_size".into(), clip.required_size("embedding_length")?.into());
        windows(clip, config)?;
        read(clip, config, &PIXELS_OF_QWEN2)
    },
    lists: &[QWEN2_5_BLOCKS],
    ..QWEN2
};

/// Qwen3-VL and, with other decoders and without rows for their deeper layers, Qwen3.5.
pub(super) const QWEN3: GgufProjector = GgufProjector {
    projector_type: "qwen3vl_merger",
    text_models: &["qwen3vl", "qwen35"],
    read: |clip, config| {
        config.vision.insert("hidden_size".into(), clip.required_size("embedding_length")?.into());
        let positions = clip.rows("v.position_embd.weight")?;
        config.vision.insert("num_position_embeddings".into(), positions.into());
        let deep = clip.bools("is_deepstack_layers")?.unwrap_or_default();
        let deep: Vec<_> = (0..deep.len()).filter(|&layer| deep[layer]).collect();
        config.vision.insert("deepstack_visual_indexes".into(), json!(deep));
        read(clip, config, &PIXELS_OF_QWEN3)
    },
    tensors: &[
        ("mm.0", "visual.merger.linear_fc1"),
        ("mm.2", "visual.merger.linear_fc2"),
        ("v.patch_embd.bias", "visual.patch_embed.proj.bias"),
        ("v.position_embd", "visual.pos_embed"),
        ("v.post_ln", "visual.merger.norm"),
    ],
    lists: &[QWEN3_BLOCKS, DEEP],
    ..QWEN2
};

/// Minimum and maximum pixels of an image in published models: `preprocessor_config.json` of
/// Qwen/Qwen2-VL-2B-Instruct and Qwen/Qwen2.5-VL-3B-Instruct.
const PIXELS_OF_QWEN2: [usize; 2] = [56 * 56, 28 * 28 * 16_384];
/// The same, of Qwen/Qwen3-VL-4B-Instruct.
const PIXELS_OF_QWEN3: [usize; 2] = [256 * 256, 4096 * 4096];

/// Side of a window in pixels where a file has none, as in all published models.
const WINDOW: usize = 112;

/// Settings of all these models.
fn read(clip: &Clip<'_>, config: &mut ProjectorConfig, [least, most]: &[usize; 2]) -> Result<()> {
    let inner = clip.inner_width("v.blk.0.ffn_up.weight")?;
    config.vision.insert("intermediate_size".into(), inner.into());
    let (least, most) =
        (clip.size("image_min_pixels")?.unwrap_or(*least), clip.size("image_max_pixels")?.unwrap_or(*most));
    config.preprocessor.insert("size".into(), json!({"shortest_edge": least, "longest_edge": most}));
    Ok(())
}

/// Period of the layers that attend to the whole image; the others attend within windows.
fn windows(clip: &Clip<'_>, config: &mut ProjectorConfig) -> Result<()> {
    const PATTERN: &str = "n_wa_pattern";
    let (pattern, layers) = (clip.required_size(PATTERN)?, clip.required_size("block_count")?);
    if pattern == 0 {
        return Err(clip.invalid(PATTERN, pattern, "a number of layers from 1 on"));
    }
    let whole: Vec<_> =
        (0..layers.min(MAX_LAYERS)).filter(|layer| (layer + 1).is_multiple_of(pattern)).collect();
    config.vision.insert("fullatt_block_indexes".into(), json!(whole));
    let side = clip.size("window_size")?.unwrap_or(WINDOW);
    config.vision.insert("window_size".into(), side.into());
    Ok(())
}
