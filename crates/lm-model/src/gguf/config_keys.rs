//! Keys of `config.json` that several architectures derive from a file.

use lm_formats::Result;
use serde_json::{Map, Value, json};

use super::Description;

/// Writes `layer_types` and returns, for each layer, true if it has a sliding window. The file gives a list,
/// or the interval of full-attention layers (`period` where the key is absent).
pub(crate) fn layer_types(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    period: usize,
) -> Result<Vec<bool>> {
    const KEY: &str = "attention.sliding_window_pattern";
    let slides = match model.flags(KEY)? {
        Some(slides) => slides,
        None => {
            let period = model.size(KEY)?.unwrap_or(period);
            (1..=model.num_layers()?).map(|layer| !layer.is_multiple_of(period)).collect()
        }
    };
    put_layer_types(config, &slides, ["sliding_attention", "full_attention"]);
    Ok(slides)
}

/// Writes `layer_types`: the first name for marked layers, the second for the others.
pub(crate) fn put_layer_types(config: &mut Map<String, Value>, marked: &[bool], names: [&str; 2]) {
    let types: Vec<_> = marked.iter().map(|&marked| names[usize::from(!marked)]).collect();
    config.insert("layer_types".to_owned(), json!(types));
}

/// Ids of a router's softmax and sigmoid under [`GATING`].
pub(crate) const SOFTMAX: u32 = 1;
pub(crate) const SIGMOID: u32 = 2;
/// Key of a router's function from logits to scores.
pub(crate) const GATING: &str = "expert_gating_func";

/// Fails if the file's router scores have another function than a sigmoid.
pub(crate) fn check_sigmoid_router(model: &Description<'_>) -> Result<()> {
    match model.size(GATING)? {
        Some(id) if id != SIGMOID as usize => {
            Err(model.metadata.unsupported(&model.key(GATING), id, format!("{SIGMOID}, a sigmoid")))
        }
        _ => Ok(()),
    }
}

/// Sets the number of key/value heads and returns, for each layer, true if it has attention.
pub(crate) fn put_kv_heads(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<Vec<bool>> {
    put_size_of_some(model, config, ["attention.head_count_kv", "num_key_value_heads"])
}

/// Sets a size that some layers have and returns, for each layer, true if it has it. The file lists the size
/// of each layer, 0 for one that it does not apply to.
pub(crate) fn put_size_of_some(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    [key, to]: [&str; 2],
) -> Result<Vec<bool>> {
    let sizes = model.sizes_of_layers(key)?;
    let have = sizes.iter().map(|&size| size > 0).collect();
    let mut of_some = sizes.into_iter().filter(|&size| size > 0);
    // Any number is valid if it applies to no layer.
    let of_each = of_some.next().unwrap_or(1);
    if let Some(other) = of_some.find(|&size| size != of_each) {
        return Err(model.metadata.unsupported(&model.key(key), other, format!("{of_each}, or 0")));
    }
    config.insert(to.to_owned(), of_each.into());
    Ok(have)
}

/// Sets the bias keys by the presence of the tensors.
pub(crate) fn put_biases(model: &Description<'_>, config: &mut Map<String, Value>) {
    for (tensor, key) in [("blk.0.attn_q.bias", "attention_bias"), ("blk.0.ffn_gate.bias", "mlp_bias")] {
        config.insert(key.to_owned(), model.tensor(tensor).is_some().into());
    }
}

/// Sets the kind of a checkpoint with a classifier, and its number of labels; `tensor` is its last
/// projection.
pub(crate) fn put_classifier(model: &Description<'_>, config: &mut Map<String, Value>, tensor: &str) {
    if let Some(labels) = rows(model, tensor) {
        config.insert("architectures".to_owned(), json!(["ForSequenceClassification"]));
        config.insert("num_labels".to_owned(), labels.into());
    }
}

/// Number of rows of a tensor; `None` if there is none.
pub(crate) fn rows(model: &Description<'_>, tensor: &str) -> Option<usize> {
    model.tensor(tensor).and_then(|(_, tensor)| tensor.shape.first().copied())
}
