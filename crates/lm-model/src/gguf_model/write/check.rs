//! Check that a GGUF file describes the same model as its folder.

use lm_tokenizer::Tokenizer;

use crate::error::{Error, Result};
use crate::gguf_model::tokenizer_difference::{Difference, tokenizer_difference};
use crate::spec::{DecoderSpec, Mixer, RopeScaling, RopeSpec};

/// Relative tolerance of RoPE numbers: files store 32-bit floats.
const ROUNDING: f32 = 1e-6;

/// Fails if the spec read from a file's metadata differs from the model's.
pub(super) fn check(architecture: &str, model: &DecoderSpec, read: &DecoderSpec) -> Result<()> {
    match difference(model, &with_order_of(model, read.clone())) {
        None => Ok(()),
        Some((what, value, read)) => {
            Err(Error::NoGgufForm { architecture: architecture.to_owned(), what, value, read })
        }
    }
}

/// Fails if the tokenizer of a file differs from the folder's.
pub(super) fn check_tokenizer(architecture: &str, folder: &Tokenizer, file: &Tokenizer) -> Result<()> {
    match tokenizer_difference(folder, file)? {
        None => Ok(()),
        Some((what, value, read)) => {
            Err(Error::NoGgufForm { architecture: architecture.to_owned(), what, value, read })
        }
    }
}

/// Returns the read spec with the model's order of a delta net's heads, where both orders are equivalent.
fn with_order_of(model: &DecoderSpec, mut read: DecoderSpec) -> DecoderSpec {
    for (model, read) in model.layers.iter().zip(&mut read.layers) {
        if let (Mixer::DeltaNet(model), Mixer::DeltaNet(read)) = (&model.mixer, &mut read.mixer) {
            let heads = read.heads;
            if heads.num_key_heads == 1 || heads.num_key_heads == heads.num_value_heads {
                read.heads.order = model.heads.order;
            }
        }
    }
    read
}

/// Returns the first differing field of two specs, with both values.
fn difference(model: &DecoderSpec, read: &DecoderSpec) -> Option<Difference> {
    let mut layers = model.layers.iter().zip(&read.layers).enumerate();
    unlike("vocab_size", &model.vocab_size, &read.vocab_size)
        .or_else(|| unlike("hidden_size", &model.hidden_size, &read.hidden_size))
        .or_else(|| unlike("context_len", &model.context_len, &read.context_len))
        .or_else(|| unlike("norm_kind", &model.norm_kind, &read.norm_kind))
        .or_else(|| unlike("norm_eps", &model.norm_eps, &read.norm_eps))
        .or_else(|| unlike("norm_weight", &model.norm_weight, &read.norm_weight))
        .or_else(|| unlike("embedding_scale", &model.embedding_scale, &read.embedding_scale))
        .or_else(|| unlike("residual_scale", &model.residual_scale, &read.residual_scale))
        .or_else(|| unlike("learned_positions", &model.learned_positions, &read.learned_positions))
        .or_else(|| unlike("output_head", &model.output_head, &read.output_head))
        .or_else(|| unlike("output_norm", &model.output_norm, &read.output_norm))
        .or_else(|| unlike("classifier", &model.classifier, &read.classifier))
        .or_else(|| unlike("encoder", &model.encoder, &read.encoder))
        .or_else(|| unlike("head_bias", &model.head_bias, &read.head_bias))
        .or_else(|| unlike("logit_scale", &model.logit_scale, &read.logit_scale))
        .or_else(|| unlike("logit_soft_cap", &model.logit_soft_cap, &read.logit_soft_cap))
        .or_else(|| unlike("per_layer_inputs", &model.per_layer_inputs, &read.per_layer_inputs))
        .or_else(|| unlike("streams", &model.streams, &read.streams))
        .or_else(|| unlike("number of layers", &model.layers.len(), &read.layers.len()))
        .or_else(|| layers.find_map(|(index, (model, read))| unlike(&format!("layer {index}"), model, read)))
        .or_else(|| unlike_ropes(&model.ropes, &read.ropes))
}

/// Returns two values' `Debug` texts from the first difference on, if any.
fn unlike(what: &str, model: &impl std::fmt::Debug, read: &impl std::fmt::Debug) -> Option<Difference> {
    let (model, read) = (format!("{model:?}"), format!("{read:?}"));
    let same = model.char_indices().zip(read.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    let same = same.or((model.len() != read.len()).then_some(model.len().min(read.len())))?;
    // From the start of the differing field.
    let start = model[..same].rfind(['{', ',']).map_or(0, |at| at + 1);
    let (model, read) = (field(&model[start..]), field(&read[start..]));
    Some(match (model.split_once(": "), read.split_once(": ")) {
        (Some((name, model)), Some((_, read))) => {
            (format!("{what}, {name}"), model.to_owned(), read.to_owned())
        }
        _ => (what.to_owned(), model.to_owned(), read.to_owned()),
    })
}

/// Returns the first field of a `Debug` text, without closing brackets of its parents.
fn field(text: &str) -> &str {
    let mut field = text.split_once(", ").map_or(text, |(field, _)| field).trim();
    let open = |field: &str| field.matches('(').count();
    while let Some(shorter) = field
        .strip_suffix(" }")
        .or_else(|| field.strip_suffix(')').filter(|_| open(field) < field.matches(')').count()))
    {
        field = shorter;
    }
    field
}

fn unlike_ropes(model: &[RopeSpec], read: &[RopeSpec]) -> Option<Difference> {
    if model.len() != read.len() {
        return unlike("ropes", &model, &read);
    }
    let mut ropes = model.iter().zip(read).enumerate();
    let (index, (model, read)) = ropes.find(|(_, (model, read))| !alike(model, read))?;
    unlike(&format!("ropes[{index}]"), model, read)
}

/// Returns true if both rotate heads alike at every sequence length.
fn alike(model: &RopeSpec, read: &RopeSpec) -> bool {
    let close = |a: f32, b: f32| (a - b).abs() <= ROUNDING * a.abs();
    let temperature = |rope: &RopeSpec| {
        rope.query_temperature.map(|temperature| [temperature.beta as f32, temperature.context as f32])
    };
    let temperatures = match (temperature(model), temperature(read)) {
        (Some(a), Some(b)) => close(a[0], b[0]) && close(a[1], b[1]),
        (a, b) => a == b,
    };
    let mut lengths = [model, read].into_iter().flat_map(turning_points);
    temperatures
        && model.rotary_dim == read.rotary_dim
        && model.pairing == read.pairing
        && lengths.all(|len| {
            let (a, b) = (model.table(len), read.table(len));
            close(a.attention_factor, b.attention_factor)
                && a.inv_freq.iter().zip(&b.inv_freq).all(|(a, b)| close(*a, *b))
        })
}

/// Lengths around which the frequencies change, and one far beyond.
fn turning_points(rope: &RopeSpec) -> Vec<usize> {
    match rope.scaling {
        RopeScaling::Dynamic { context, .. } | RopeScaling::LongRope { context, .. } => {
            vec![1, context, context.saturating_add(1), context.saturating_mul(4)]
        }
        _ => vec![1],
    }
}
