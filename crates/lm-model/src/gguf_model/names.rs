//! Mapping of GGUF tensor names to model names, with the transformations to undo on reading.

use lm_formats::{GgufTensor, Result};

use crate::checkpoint::{RowOrder, StoredCoding, StoredTensor, StoredValues, TensorType};
use crate::gguf::{Description, GgufArchitecture, RopeLayout, TensorNames};

/// Tensors outside the layers.
const SHARED: TensorNames =
    &[("output", "lm_head"), ("output_norm", "model.norm"), ("token_embd", "model.embed_tokens")];
/// Tensors of each layer.
const SHARED_OF_LAYERS: TensorNames = &[
    ("attn_k", "self_attn.k_proj"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("attn_norm", "input_layernorm"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_v", "self_attn.v_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_up", "mlp.up_proj"),
];
/// Tensors that hold metadata and are read with it.
pub(super) const METADATA_TENSORS: [&str; 3] =
    ["rope_factors_long.weight", "rope_factors_short.weight", "rope_freqs.weight"];

/// Returns the tensor's name in the model; `None` if it is not a weight. Unknown names stay unchanged.
pub(super) fn model_name(architecture: &GgufArchitecture, num_layers: usize, name: &str) -> Option<String> {
    if METADATA_TENSORS.contains(&name) {
        return None;
    }
    let renamed = match in_layer(name) {
        // Multi-token-prediction layers are not run.
        Some((layer, _)) if layer >= num_layers => return None,
        Some((layer, name)) => {
            renamed(architecture, SHARED_OF_LAYERS, name).map(|name| format!("model.layers.{layer}.{name}"))
        }
        None => renamed(architecture, SHARED, name),
    };
    Some(renamed.unwrap_or_else(|| name.to_owned()))
}

/// Looks up the whole name, or its stem without the suffix (`.weight`, `.bias`) that both names share.
fn renamed(architecture: &GgufArchitecture, shared: TensorNames, name: &str) -> Option<String> {
    let find = |name: &str| {
        let rows = architecture.tensors.iter().copied().flatten().chain(shared);
        rows.into_iter().find(|row| row.0 == name).map(|row| row.1)
    };
    let of_stem = || {
        let (stem, ending) = name.rsplit_once('.')?;
        Some(format!("{}.{ending}", find(stem)?))
    };
    find(name).map(str::to_owned).or_else(of_stem)
}

/// Returns the GGUF name of a model tensor; `None` if there is none.
pub(super) fn file_name(architecture: &GgufArchitecture, num_layers: usize, name: &str) -> Option<String> {
    let layer =
        name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')).map(|(layer, _)| layer);
    let (prefix, shared) = match layer {
        Some(layer) => (format!("blk.{layer}."), SHARED_OF_LAYERS),
        None => (String::new(), SHARED),
    };
    let rows = || architecture.tensors.iter().copied().flatten().chain(shared);
    let mut names =
        rows().flat_map(|row| ["", ".weight", ".bias"].map(|kind| format!("{prefix}{}{kind}", row.0)));
    let own = names.find(|own| model_name(architecture, num_layers, own).as_deref() == Some(name));
    // Experts that a checkpoint has in one tensor lack the suffix there.
    let own = own.map(|own| if own.ends_with("_exps") { own + ".weight" } else { own });
    // Several tensors of a model may have one name in files, where they stand for each other.
    own.or_else(|| {
        let (stem, kind) = name.rsplit_once('.')?;
        let stem =
            layer.map_or(stem, |layer| stem.strip_prefix(&format!("model.layers.{layer}.")).unwrap_or(stem));
        rows().find(|row| row.1 == stem).map(|row| format!("{prefix}{}.{kind}", row.0))
    })
}

/// Splits `blk.7.attn_q.weight` into `7` and `attn_q.weight`.
fn in_layer(name: &str) -> Option<(usize, &str)> {
    let (layer, name) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, name))
}

/// Returns the stored form of the tensor, with its differences from the model's.
pub(super) fn stored(
    architecture: &GgufArchitecture,
    model: &Description<'_>,
    tensor: &GgufTensor,
) -> Result<StoredTensor> {
    let name = in_layer(&tensor.name).map_or(tensor.name.as_str(), |(_, name)| name);
    let rotated = matches!(name, "attn_q.weight" | "attn_k.weight" | "attn_q.bias" | "attn_k.bias");
    let order = match architecture.rope_layout {
        RopeLayout::Interleaved if rotated => pairs(model, tensor)?,
        _ => RowOrder::Same,
    };
    let values = architecture.values.iter().find(|row| row.0 == name);
    let values = values.map_or(StoredValues::Same, |row| row.1);
    let (ty, shape, range) = (TensorType::of_gguf(tensor.ty), tensor.shape.clone(), tensor.range.clone());
    Ok(StoredTensor { file: 0, ty, shape, range, order, values, coding: StoredCoding::Rows })
}

fn pairs(model: &Description<'_>, tensor: &GgufTensor) -> Result<RowOrder> {
    let (head_dim, rows) = (model.head_dim()?, tensor.shape[0]);
    if head_dim == 0 || !head_dim.is_multiple_of(2) || !rows.is_multiple_of(head_dim) {
        let (key, expected) = (
            model.key("attention.key_length"),
            format!("even, and a divisor of the {rows} rows of {}", tensor.name),
        );
        return Err(model.metadata.invalid(&key, head_dim, expected));
    }
    Ok(RowOrder::InterleavedRope { head_dim })
}
