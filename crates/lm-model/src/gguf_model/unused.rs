//! Unread metadata keys that describe the model.
//!
//! An ignored setting would silently give wrong logits, so a file with one is rejected, unless its value has
//! no effect here.

use Harmless::{Anything, As, One, Zero};
use lm_formats::{Error, GgufProblem, GgufValue, Result};

use super::names;
use crate::gguf::Description;

/// Values that make an unread key harmless.
#[derive(Clone, Copy, Debug)]
enum Harmless {
    Anything,
    /// 0, or false.
    Zero,
    One,
    /// The value of another key.
    As(&'static str),
}

/// Keys that may stay unread: their harmless values, and the reason. Sorted by key.
const HARMLESS: &[(&str, Harmless, &str)] = &[
    ("attention.clamp_kqv", Zero, "0 clamps nothing"),
    ("attention.key_length_swa", As("attention.key_length"), "sliding layers have heads of the same width"),
    ("attention.layer_norm_epsilon", Anything, "only architectures with LayerNorm read it"),
    ("attention.max_alibi_bias", Zero, "0 biases no score"),
    ("attention.sliding_window", Zero, "0 disables the window"),
    ("attention.value_length_swa", As("attention.value_length"), "as key_length_swa"),
    ("expert_count", Zero, "there are no experts"),
    ("expert_gating_func", One, "1 is a softmax"),
    ("expert_group_count", Zero, "experts are not in groups"),
    ("expert_group_used_count", Zero, "experts are not in groups"),
    ("expert_shared_count", Zero, "no expert is shared"),
    ("expert_used_count", Zero, "there are no experts"),
    ("leading_dense_block_count", Zero, "all layers are alike"),
    ("n_deepstack_layers", Anything, "the mmproj file has them"),
    ("rope.dimension_count_swa", As("rope.dimension_count"), "as much of a head turns in sliding layers"),
    ("rope.dimension_sections", Anything, "they are for images; all positions of a text token are the same"),
    ("rope.freq_base_swa", As("rope.freq_base"), "sliding layers turn by the same frequencies"),
    ("rope.scaling.finetuned", Anything, "it says what the model was trained for"),
    ("rope.scaling.yarn_ext_factor", One, "YaRN as it is defined"),
    ("tensor_data_layout", Anything, "it says where the tensors came from"),
    ("use_parallel_residual", Zero, "the blocks follow each other"),
    ("vocab_size", Anything, "the embedding has as many rows"),
];

/// Fails if a key with the architecture prefix, or a tensor that holds metadata, has not been read.
pub(super) fn reject(model: &Description<'_>) -> Result<()> {
    let prefix = model.key("");
    for (key, _) in model.metadata.keys() {
        let Some(own) = key.strip_prefix(&prefix) else { continue };
        if !model.was_read(key) && !is_harmless(model, own)? {
            return Err(unused(model, key)?);
        }
    }
    let tensors = model.shards.iter().flat_map(|shard| shard.file.tensors());
    let metadata = tensors.filter(|tensor| names::METADATA_TENSORS.contains(&tensor.name.as_str()));
    if let Some(tensor) = metadata.into_iter().find(|tensor| !model.was_read(&tensor.name)) {
        return Err(unused(model, &tensor.name)?);
    }
    Ok(())
}

fn is_harmless(model: &Description<'_>, key: &str) -> Result<bool> {
    let Some((_, harmless, _)) = HARMLESS.iter().find(|row| row.0 == key) else { return Ok(false) };
    let value = |key: &str| model.metadata.value(&model.key(key));
    Ok(match harmless {
        Anything => true,
        Zero => {
            matches!(value(key)?, Some(GgufValue::Int(0) | GgufValue::Float(0.0) | GgufValue::Bool(false)))
        }
        One => matches!(value(key)?, Some(GgufValue::Int(1) | GgufValue::Float(1.0))),
        As(other) => value(key)?.is_some() && value(key)? == value(other)?,
    })
}

fn unused(model: &Description<'_>, name: &str) -> Result<Error> {
    let value = match model.metadata.value(name)? {
        Some(GgufValue::Int(number)) => number.to_string(),
        Some(GgufValue::Float(number)) => number.to_string(),
        Some(GgufValue::Bool(truth)) => truth.to_string(),
        Some(GgufValue::Text(text)) => String::from_utf8_lossy(text).chars().take(100).collect(),
        None => "a list".to_owned(),
    };
    let problem = GgufProblem::Unused { name: name.to_owned(), value };
    Ok(Error::Gguf { file: model.metadata.file().to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_have_reasons() {
        assert!(HARMLESS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(HARMLESS.iter().all(|row| !row.2.is_empty()));
    }
}
