//! Check that a GGUF file describes the same model as its folder.

use lm_tokenizer::{TokenId, TokenKind, Tokenizer};

use crate::error::{Error, Result};
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

/// Probe with every kind of text that pre-tokenizers split differently: words, contractions, numbers,
/// whitespace, other scripts, punctuation.
const PROBE: &str = "Hello, world! I'll say it's WE'VE (don't) x2 3 45 678 9012345 1,234.5e-6\n\n \n\t\t  a   b    c \r\n\
    snake_case camelCase HTTPServer2 {\"key\": [1, 22, null]} // --- ==> <a href='#'> \u{2581}\
    \u{e9}t\u{e9} na\u{ef}ve Stra\u{df}e \u{41f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{4f60}\u{597d}\u{4e16}\u{754c}123 \
    \u{3053}\u{3093}\u{306b}\u{3061}\u{306f} \u{c548}\u{b155} \u{645}\u{631}\u{62d}\u{628}\u{627} \
    \u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947} \u{1f600}\u{1f469}\u{200d}\u{1f680} \u{2026}\u{a0}\u{3000}end ";

/// Fails if the tokenizer of a file differs from the folder's.
pub(super) fn check_tokenizer(architecture: &str, folder: &Tokenizer, file: &Tokenizer) -> Result<()> {
    let unlike = |what: String, value: String, read: String| {
        Err(Error::NoGgufForm { architecture: architecture.to_owned(), what, value, read })
    };
    for id in 0..folder.vocab_size() as TokenId {
        let token = |tokenizer: &Tokenizer| {
            let bytes = String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned();
            format!("{bytes:?}, {:?}", tokenizer.token_kind(id))
        };
        if folder.token_bytes(id) != file.token_bytes(id) || folder.token_kind(id) != file.token_kind(id) {
            return unlike(format!("token {id}"), token(folder), token(file));
        }
    }
    let added = (0..folder.vocab_size() as TokenId).filter(|&id| folder.token_kind(id) != TokenKind::Text);
    let added = added.map(|id| String::from_utf8_lossy(folder.token_bytes(id)).into_owned());
    let texts =
        std::iter::once(PROBE.to_owned()).chain(added.take(64).map(|token| format!("a{token} b{token}\n")));
    for text in texts {
        let (ids, read) = (folder.encode(&text)?, file.encode(&text)?);
        if let Some(at) = (0..ids.len().max(read.len())).find(|&at| ids.get(at) != read.get(at)) {
            let from = |ids: &[TokenId]| format!("{:?}", &ids[at.min(ids.len())..(at + 4).min(ids.len())]);
            return unlike(format!("the ids of {text:?} from the {at}th on"), from(&ids), from(&read));
        }
    }
    Ok(())
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

/// The differing field, and both values.
type Difference = (String, String, String);

/// Returns the first differing field of two specs, with both values.
fn difference(model: &DecoderSpec, read: &DecoderSpec) -> Option<Difference> {
    let mut layers = model.layers.iter().zip(&read.layers).enumerate();
    unlike("vocab_size", &model.vocab_size, &read.vocab_size)
        .or_else(|| unlike("hidden_size", &model.hidden_size, &read.hidden_size))
        .or_else(|| unlike("context_len", &model.context_len, &read.context_len))
        .or_else(|| unlike("norm_eps", &model.norm_eps, &read.norm_eps))
        .or_else(|| unlike("norm_weight", &model.norm_weight, &read.norm_weight))
        .or_else(|| unlike("embedding_scale", &model.embedding_scale, &read.embedding_scale))
        .or_else(|| unlike("residual_scale", &model.residual_scale, &read.residual_scale))
        .or_else(|| unlike("output_head", &model.output_head, &read.output_head))
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
