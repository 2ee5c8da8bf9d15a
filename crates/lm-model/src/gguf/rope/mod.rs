//! RoPE parameters of a file's keys and tensors, in the form of config.json's `rope_parameters`.
//!
//! Every parameter is written explicitly, with llama.cpp's default for an absent key, so that no default of a
//! model's config class applies.
//!
//! Source: `load_hparams` in `src/llama-model.cpp` of llama.cpp; for YaRN's attention factor,
//! `src/llama-context.cpp`.

mod proportional;

use lm_formats::{Error, Result};
use serde_json::{Map, Value, json};

pub(crate) use self::proportional::{proportional, proportional_divisors};
use super::{Description, decimal};

/// RoPE base (theta) of files without one.
const THETA: f64 = 10_000.0;
const ATTENTION_FACTOR: &str = "rope.scaling.attn_factor";
const TYPE: &str = "rope.scaling.type";
/// Pairs of each axis of M-RoPE.
pub(crate) const ROPE_SECTIONS: &str = "rope.dimension_sections";

/// RoPE scaling of all frequencies alike, or by their index.
#[derive(Clone, Copy, PartialEq)]
enum Scaling {
    None,
    Linear { factor: f64 },
    Yarn { factor: f64 },
}

/// RoPE base (theta) of sliding-window layers where a file has none.
#[derive(Clone, Copy)]
pub(crate) enum SlidingTheta {
    /// 10,000.
    Default,
    /// The base of full-attention layers.
    OfFullLayers,
}

/// Writes the parameters that all layers share.
pub(crate) fn of_all_layers(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    config.insert("rope_parameters".to_owned(), parameters(model)?.into());
    Ok(())
}

/// Writes the parameters that all layers share, with the sections of M-RoPE where the file has them.
pub(crate) fn with_sections(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let mut rope = parameters(model)?;
    if let Some(sections) = model.sizes(ROPE_SECTIONS)? {
        // The fourth is of models with four axes; the others have none or 0.
        let (axes, others) = sections.split_at(sections.len().min(3));
        if axes.len() < 3 || others.iter().any(|&section| section != 0) {
            let expected = "three numbers of pairs, and zeros";
            return Err(model.metadata.invalid(&model.key(ROPE_SECTIONS), format!("{sections:?}"), expected));
        }
        rope.insert("mrope_section".to_owned(), json!(axes));
    }
    config.insert("rope_parameters".to_owned(), rope.into());
    Ok(())
}

/// Writes the parameters of full-attention layers, and of sliding-window layers, which have their own base
/// and no scaling.
pub(crate) fn by_layer_type(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    theta: SlidingTheta,
) -> Result<()> {
    let full = parameters(model)?;
    let theta = match (model.json("rope.freq_base_swa")?, theta) {
        (Some(theta), _) => theta,
        (None, SlidingTheta::Default) => json!(THETA),
        (None, SlidingTheta::OfFullLayers) => full["rope_theta"].clone(),
    };
    let fraction = full["partial_rotary_factor"].clone();
    let sliding = json!({"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": fraction});
    let parameters = json!({"full_attention": full, "sliding_attention": sliding});
    config.insert("rope_parameters".to_owned(), parameters);
    Ok(())
}

/// Returns the parameters of full-attention layers.
pub(crate) fn parameters(model: &Description<'_>) -> Result<Map<String, Value>> {
    let head_dim = model.head_dim()?;
    let rotated = model.size("rope.dimension_count")?.unwrap_or(head_dim);
    let original = match model.size("rope.scaling.original_context_length")? {
        Some(context) => context,
        None => model.required_size("context_length")?,
    };
    let mut rope = Map::new();
    let mut put = |key: &str, value: Value| drop(rope.insert(key.to_owned(), value));
    put("rope_theta", model.json("rope.freq_base")?.unwrap_or_else(|| json!(THETA)));
    put("partial_rotary_factor", rotary_fraction(rotated, head_dim).into());
    put("original_max_position_embeddings", original.into());
    let attention_factor = number(model, ATTENTION_FACTOR)?;
    let kind = match (scaling(model)?, divisors(model)?) {
        (Scaling::None, Some([short, long])) => {
            put("factor", 1.0.into());
            put("attention_factor", attention_factor.unwrap_or(1.0).into());
            put("short_factor", short);
            put("long_factor", long);
            "longrope"
        }
        (scaling, Some(_)) => {
            let known = "none, or longrope: there are divisors of the frequencies";
            return Err(model.metadata.unsupported(&model.key(TYPE), scaling.name(), known));
        }
        (scaling @ (Scaling::None | Scaling::Linear { .. }), None)
            if attention_factor.is_some_and(|factor| factor != 1.0) =>
        {
            let known = format!("1 where {} is {}", model.key(TYPE), scaling.name());
            let got = attention_factor.unwrap_or_default();
            return Err(model.metadata.unsupported(&model.key(ATTENTION_FACTOR), got, known));
        }
        (Scaling::None, None) => "default",
        (Scaling::Linear { factor }, None) => {
            put("factor", factor.into());
            "linear"
        }
        (Scaling::Yarn { factor }, None) => {
            put("factor", factor.into());
            for (key, value) in yarn(model, factor, attention_factor)? {
                put(key, value);
            }
            "yarn"
        }
    };
    put("rope_type", kind.into());
    Ok(rope)
}

/// Returns the scaling of the metadata keys, ignoring divisors in tensors.
fn scaling(model: &Description<'_>) -> Result<Scaling> {
    let factor = match number(model, "rope.scaling.factor")? {
        Some(factor) => Some(factor),
        None => number(model, "rope.scale_linear")?, // The key of early files.
    };
    let factor = factor.filter(|factor| *factor != 0.0).unwrap_or(1.0);
    Ok(match model.str(TYPE)?.unwrap_or("linear") {
        "none" | "longrope" => Scaling::None,
        "linear" if factor == 1.0 => Scaling::None,
        "linear" => Scaling::Linear { factor },
        "yarn" => Scaling::Yarn { factor },
        other => {
            let known = "none, linear, yarn, longrope";
            return Err(model.metadata.unsupported(&model.key(TYPE), other, known));
        }
    })
}

/// Returns YaRN's parameters except the scaling factor and the original context length.
///
/// The attention factor (on sine and cosine) is computed from them; `rope.scaling.attn_factor` multiplies it.
/// `yarn_attn_factor` is the value that the converter found under `attention_factor`, which replaces it in
/// transformers, or else under `attn_factor`, which transformers ignores and which is its reciprocal in the
/// checkpoints that have it. (llama.cpp itself ignores the key.)
fn yarn(
    model: &Description<'_>,
    factor: f64,
    attention_factor: Option<f64>,
) -> Result<Vec<(&'static str, Value)>> {
    const KEYS: [(&str, &str); 2] =
        [("rope.scaling.yarn_beta_fast", "beta_fast"), ("rope.scaling.yarn_beta_slow", "beta_slow")];
    let mut parameters = Vec::new();
    for (from, to) in KEYS {
        parameters.extend(model.json(from)?.map(|value| (to, value)));
    }
    let all = number(model, "rope.scaling.yarn_log_multiplier")?.filter(|all| *all != 0.0);
    let magnitude = yarn_magnitude(factor, all);
    let given = number(model, "rope.scaling.yarn_attn_factor")?;
    let given = given.filter(|given| (given * magnitude - 1.0).abs() > RECIPROCAL);
    match (attention_factor, given, all) {
        (Some(times), _, _) => parameters.push(("attention_factor", (magnitude * times).into())),
        (None, Some(given), _) => parameters.push(("attention_factor", given.into())),
        // Files contain one of the two weights; the other is 1.
        (None, None, Some(all)) => {
            parameters.extend([("mscale", 1.0.into()), ("mscale_all_dim", all.into())]);
        }
        (None, None, None) => {}
    }
    Ok(parameters)
}

/// Tolerance of the product of a number and its reciprocal, both rounded to 32 bits, around 1.
const RECIPROCAL: f64 = 1e-5;

/// YaRN's attention factor, before `rope.scaling.attn_factor`.
pub(crate) fn yarn_magnitude(factor: f64, all: Option<f64>) -> f64 {
    let magnitude = |weight: f64| if factor <= 1.0 { 1.0 } else { 0.1 * weight * factor.ln() + 1.0 };
    magnitude(1.0) / all.map_or(1.0, magnitude)
}

/// Returns the frequency divisors for short and long contexts. A single list for both represents Llama 3's
/// scaling, whose parameters files do not contain.
fn divisors(model: &Description<'_>) -> Result<Option<[Value; 2]>> {
    const NAMES: [&str; 2] = ["rope_factors_short.weight", "rope_factors_long.weight"];
    let of_all = list(model, "rope_freqs.weight")?;
    match (NAMES.map(|name| list(model, name)), of_all) {
        ([Ok(Some(short)), Ok(Some(long))], None) => Ok(Some([short, long])),
        ([Ok(None), Ok(None)], of_all) => Ok(of_all.map(|divisors| [divisors.clone(), divisors])),
        ([short, long], of_all) => {
            let (short, of_all) = (short?.is_some(), long?.and(of_all).is_some());
            let tensor = NAMES[usize::from(short)].to_owned();
            if of_all {
                return Err(model.metadata.unsupported(
                    "rope_freqs.weight",
                    "there",
                    format!("absent beside {tensor}"),
                ));
            }
            Err(Error::MissingTensor { location: model.metadata.file().to_owned(), tensor })
        }
    }
}

/// Returns a tensor of divisors as a list.
fn list(model: &Description<'_>, name: &str) -> Result<Option<Value>> {
    let Some(divisors) = model.vector(name)? else { return Ok(None) };
    let numbers: Option<Vec<_>> = divisors.iter().map(|&divisor| decimal(divisor.into())).collect();
    let numbers = numbers.ok_or_else(|| model.metadata.invalid(name, "not finite", "finite numbers"))?;
    Ok(Some(json!(numbers)))
}

/// Returns a number in the form of config.json.
fn number(model: &Description<'_>, key: &str) -> Result<Option<f64>> {
    let Some(number) = model.float(key)? else { return Ok(None) };
    let finite = decimal(number).and_then(|number| number.as_f64());
    finite.map(Some).ok_or_else(|| model.metadata.invalid(&model.key(key), number, "a finite number"))
}

/// Fraction of `all` elements that are rotated, such that `all · fraction`, truncated, is at least `rotated`.
fn rotary_fraction(rotated: usize, all: usize) -> f64 {
    let fraction = rotated as f64 / all as f64;
    if ((all as f64 * fraction) as usize) < rotated { fraction.next_up() } else { fraction }
}

impl Scaling {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Linear { .. } => "linear",
            Self::Yarn { .. } => "yarn",
        }
    }
}
