//! The tensors of a file under their names in the model, with what has to be undone when they are read.

use super::GgufTensor;
use super::architectures::{GgufArchitecture, RopeRows, TensorNames};
use super::description::Description;
use crate::Result;
use crate::weights::{RowOrder, StoredCoding, StoredTensor, StoredValues, TensorType};

/// Tensors outside layers.
const SHARED: TensorNames =
    &[("output", "lm_head"), ("output_norm", "model.norm"), ("token_embd", "model.embed_tokens")];
/// Tensors of a layer.
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
/// Tensors that are settings, read with these.
pub(super) const SETTINGS: [&str; 3] =
    ["rope_factors_long.weight", "rope_factors_short.weight", "rope_freqs.weight"];

/// The tensor's name in the model; `None` for what is no weight. A name that is not known stays as it is.
pub(super) fn model_name(architecture: &GgufArchitecture, num_layers: usize, name: &str) -> Option<String> {
    if SETTINGS.contains(&name) {
        return None;
    }
    let renamed = match in_layer(name) {
        // Layers that predict further tokens are not run.
        Some((layer, _)) if layer >= num_layers => return None,
        Some((layer, name)) => {
            renamed(architecture, SHARED_OF_LAYERS, name).map(|name| format!("model.layers.{layer}.{name}"))
        }
        None => renamed(architecture, SHARED, name),
    };
    Some(renamed.unwrap_or_else(|| name.to_owned()))
}

/// By the row of the whole name, or of the name without the ending that both names have.
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

/// The name that a file has for a tensor of the model; `None` where it has none.
pub(super) fn file_name(architecture: &GgufArchitecture, num_layers: usize, name: &str) -> Option<String> {
    let layer =
        name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')).map(|(layer, _)| layer);
    let (prefix, shared) = match layer {
        Some(layer) => (format!("blk.{layer}."), SHARED_OF_LAYERS),
        None => (String::new(), SHARED),
    };
    let stems = architecture.tensors.iter().copied().flatten().chain(shared).map(|row| row.0);
    let mut names =
        stems.flat_map(|stem| ["", ".weight", ".bias"].map(|kind| format!("{prefix}{stem}{kind}")));
    names.find(|own| model_name(architecture, num_layers, own).as_deref() == Some(name))
}

/// `7` and `attn_q.weight` of `blk.7.attn_q.weight`.
fn in_layer(name: &str) -> Option<(usize, &str)> {
    let (layer, name) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, name))
}

/// How the tensor is stored, and how it differs from the model's.
pub(super) fn stored(
    architecture: &GgufArchitecture,
    model: &Description<'_>,
    tensor: &GgufTensor,
) -> Result<StoredTensor> {
    let name = in_layer(&tensor.name).map_or(tensor.name.as_str(), |(_, name)| name);
    let turned = matches!(name, "attn_q.weight" | "attn_k.weight" | "attn_q.bias" | "attn_k.bias");
    let order = match architecture.rope_rows {
        RopeRows::Pairs if turned => pairs(model, tensor)?,
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
    Ok(RowOrder::RopePairs { head_dim })
}
