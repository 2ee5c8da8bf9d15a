//! The tensors of a file under their names in the model, with what has to be undone when they are read.

use super::GgufTensor;
use super::architectures::{GgufArchitecture, Norms, RopeRows};
use super::description::Description;
use crate::Result;
use crate::weights::{RowOrder, StoredCoding, StoredTensor, StoredValues, TensorType};

/// Tensors outside layers.
const SHARED: &[(&str, &str)] =
    &[("output", "lm_head"), ("output_norm", "model.norm"), ("token_embd", "model.embed_tokens")];
/// Tensors of a layer.
const SHARED_OF_LAYERS: &[(&str, &str)] = &[
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
const SETTINGS: [&str; 3] = ["rope_factors_long.weight", "rope_factors_short.weight", "rope_freqs.weight"];

/// The tensor's name in the model; `None` for what is no weight. A name that is not known stays as it is.
pub(super) fn model_name(architecture: &GgufArchitecture, num_layers: usize, name: &str) -> Option<String> {
    if SETTINGS.contains(&name) {
        return None;
    }
    let Some((stem, kind)) = name.rsplit_once('.') else { return Some(name.to_owned()) };
    let find = |shared: &[(&str, &'static str)], stem: &str| {
        architecture.tensors.iter().chain(shared).find(|row| row.0 == stem).map(|row| row.1)
    };
    let renamed = match layer_and_stem(stem) {
        // Layers that predict further tokens are not run.
        Some((layer, _)) if layer >= num_layers => return None,
        Some((layer, stem)) => {
            find(SHARED_OF_LAYERS, stem).map(|stem| format!("model.layers.{layer}.{stem}.{kind}"))
        }
        None => find(SHARED, stem).map(|stem| format!("{stem}.{kind}")),
    };
    Some(renamed.unwrap_or_else(|| name.to_owned()))
}

/// `7` and `attn_q` of `blk.7.attn_q`.
fn layer_and_stem(stem: &str) -> Option<(usize, &str)> {
    let (layer, stem) = stem.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, stem))
}

/// How the tensor is stored, and how it differs from the model's.
pub(super) fn stored(
    architecture: &GgufArchitecture,
    model: &Description<'_>,
    tensor: &GgufTensor,
) -> Result<StoredTensor> {
    let stem = layer_and_stem(&tensor.name).map_or(tensor.name.as_str(), |(_, stem)| stem);
    let turned = matches!(stem, "attn_q.weight" | "attn_k.weight" | "attn_q.bias" | "attn_k.bias");
    let order = match architecture.rope_rows {
        RopeRows::Pairs if turned => pairs(model, tensor)?,
        _ => RowOrder::Same,
    };
    let values = match architecture.norms {
        Norms::PlusOne if stem.ends_with("norm.weight") => StoredValues::PlusOne,
        _ => StoredValues::Same,
    };
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
