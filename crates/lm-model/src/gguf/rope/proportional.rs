//! Proportional RoPE of full-attention layers (Gemma 4): frequencies are those of the whole head, but only
//! the first pairs are rotated.
//!
//! Files express it by frequency divisors: 1 for rotated pairs, 1e30 in place of infinity for the others.

use lm_formats::{Error, Result};
use serde_json::{Map, Value, json};

use super::{Scaling, THETA, rotary_fraction, scaling};
use crate::gguf::Description;

const DIVISORS: &str = "rope_freqs.weight";
/// Divisor of the frequencies of pairs that are not rotated.
const UNROTATED: f32 = 1e30;

/// Writes the parameters of full-attention layers, which are proportional, and of sliding-window layers,
/// which have their own base.
pub(crate) fn proportional(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    check_rotated(model)?;
    let fraction = fraction(model)?;
    let theta = |key| Ok::<_, Error>(model.json(key)?.unwrap_or_else(|| json!(THETA)));
    let full = json!({
        "rope_type": "proportional",
        "partial_rotary_factor": fraction,
        "rope_theta": theta("rope.freq_base")?,
    });
    let sliding = json!({"rope_type": "default", "rope_theta": theta("rope.freq_base_swa")?});
    let parameters = json!({"full_attention": full, "sliding_attention": sliding});
    config.insert("rope_parameters".to_owned(), parameters);
    Ok(())
}

/// Returns the tensor of divisors for the rotation of the first `pairs` of `rotary_dim / 2`.
pub(crate) fn proportional_divisors(rotary_dim: usize, pairs: usize) -> (&'static str, Vec<f32>) {
    let divisor = |pair| if pair < pairs { 1.0 } else { UNROTATED };
    (DIVISORS, (0..rotary_dim / 2).map(divisor).collect())
}

/// Rejects keys for a partial rotary of other kinds, or for scaled frequencies.
fn check_rotated(model: &Description<'_>) -> Result<()> {
    for [rotated, head_dim] in [
        ["rope.dimension_count", "attention.key_length"],
        ["rope.dimension_count_swa", "attention.key_length_swa"],
        ["attention.value_length_swa", "attention.key_length_swa"],
    ] {
        if let Some(elements) = model.size(rotated)?.filter(|&n| model.size(head_dim).ok() != Some(Some(n))) {
            let known = format!("as many as {}", model.key(head_dim));
            return Err(model.metadata.unsupported(&model.key(rotated), elements, known));
        }
    }
    if scaling(model)? != Scaling::None {
        return Err(model.metadata.unsupported(&model.key("rope.scaling"), "there", "none"));
    }
    Ok(())
}

/// Returns the fraction of rotated pairs in a full-attention layer's head.
fn fraction(model: &Description<'_>) -> Result<f64> {
    let missing =
        || Error::MissingTensor { location: model.metadata.file().to_owned(), tensor: DIVISORS.to_owned() };
    let divisors = model.vector(DIVISORS)?.ok_or_else(missing)?;
    if divisors.len().checked_mul(2) != Some(model.head_dim()?) {
        let expected = format!("half of {}", model.key("attention.key_length"));
        return Err(model.metadata.invalid(DIVISORS, format!("{} numbers", divisors.len()), expected));
    }
    let rotated = divisors.iter().take_while(|&&divisor| divisor == 1.0).count();
    let others = &divisors[rotated..];
    if let Some(other) = others.iter().find(|&&divisor| divisor < UNROTATED || divisor.is_nan()) {
        return Err(model.metadata.unsupported(DIVISORS, other, "ones, then 1e30"));
    }
    Ok(rotary_fraction(rotated, divisors.len()))
}
