//! `config.json` under its own keys.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::weights::Quantization;
use crate::{Error, Result, TokenId, WeightFormat};

/// The file that this module reads, as errors name it.
pub(crate) const CONFIG_FILE: &str = "config.json";

/// What a decoder's `config.json` says, key for key: the keys that architectures share. Those of a single one are read in its
/// file; keys that no architecture here reads are passed over.
#[derive(Clone, Debug, Deserialize)]
pub struct ModelConfig {
    /// Names the architecture: `llama`, `qwen3`.
    pub model_type: String,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of a row between the blocks.
    pub hidden_size: usize,
    /// Width inside the feed-forward block; the largest, where a file has a list of one for each layer.
    #[serde(deserialize_with = "one_or_largest")]
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads; as many as query heads where absent.
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; the architecture says what holds where it is absent.
    pub head_dim: Option<usize>,
    /// Longest sequence.
    pub max_position_embeddings: usize,
    /// Added to the mean square in RMS norms.
    pub rms_norm_eps: f64,
    /// Activation of the feed-forward gate; `silu` where absent.
    pub hidden_act: Option<String>,
    /// Whether the output head is the embedding.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Whether the attention's four projections have a bias.
    #[serde(default)]
    pub attention_bias: bool,
    /// Whether the feed-forward projections have a bias.
    #[serde(default)]
    pub mlp_bias: bool,
    /// RoPE base as older files write it.
    pub rope_theta: Option<f64>,
    /// RoPE scaling as older files write it; goes before `rope_parameters`.
    pub rope_scaling: Option<RopeParameters>,
    /// RoPE base and scaling as transformers 5 writes them; its base goes before `rope_theta`.
    pub rope_parameters: Option<RopeParameters>,
    /// Part of a head that is rotated.
    pub partial_rotary_factor: Option<f64>,
    /// Context of the first training; goes before the value among RoPE's parameters.
    pub original_max_position_embeddings: Option<f64>,
    /// Whether `sliding_window` holds at all.
    #[serde(default)]
    pub use_sliding_window: bool,
    /// Slots that a sliding layer sees, the query itself included.
    pub sliding_window: Option<usize>,
    /// First layer that slides, where `layer_types` is absent.
    pub max_window_layers: Option<usize>,
    /// `full_attention` or `sliding_attention` for each layer.
    pub layer_types: Option<Vec<String>>,
    /// Ids that end a reply, where `generation_config.json` has none.
    pub eos_token_id: Option<TokenIds>,
    /// How the weights were quantised before they were written: as [`crate::ModelFolder::convert`] does it, `mxfp4` or `fp8`.
    pub quantization_config: Option<Value>,
    /// Every key, those above included.
    #[serde(skip)]
    pub(crate) keys: Map<String, Value>,
}

/// RoPE base and scaling, the values of `rope_parameters` or `rope_scaling`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RopeParameters {
    /// `default`, `dynamic`, `linear`, `llama3`, `longrope`, `proportional` or `yarn`.
    pub rope_type: Option<String>,
    /// The same under its oldest name.
    #[serde(rename = "type")]
    pub legacy_type: Option<String>,
    /// Base of the frequencies.
    pub rope_theta: Option<f64>,
    /// Part of a head that is rotated.
    pub partial_rotary_factor: Option<f64>,
    /// How many times longer the context is made; the divisor of frequencies.
    pub factor: Option<f64>,
    /// Context of the first training.
    pub original_max_position_embeddings: Option<f64>,
    /// `llama3`: wavelengths above the original context divided by this are scaled whole.
    pub low_freq_factor: Option<f64>,
    /// `llama3`: wavelengths below the original context divided by this are not scaled.
    pub high_freq_factor: Option<f64>,
    /// `yarn`: turns within the original context from which on a frequency is kept. Default: 32.
    pub beta_fast: Option<f64>,
    /// `yarn`: turns within the original context up to which a frequency is scaled whole. Default: 1.
    pub beta_slow: Option<f64>,
    /// `yarn`: weight of the factor on sine and cosine.
    pub mscale: Option<f64>,
    /// `yarn`: weight of what that factor is divided by.
    pub mscale_all_dim: Option<f64>,
    /// `yarn`: whether the borders between bands are rounded to whole pairs. Default: they are.
    pub truncate: Option<bool>,
    /// `yarn`, `longrope`: factor on sine and cosine, in place of the one that follows from the others.
    pub attention_factor: Option<f64>,
    /// `longrope`: divisors for sequences within the original context.
    pub short_factor: Option<Vec<f64>>,
    /// `longrope`: divisors for longer ones.
    pub long_factor: Option<Vec<f64>>,
    /// Everything else: passed over with a warning, as in transformers.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl RopeParameters {
    /// The kind of scaling.
    pub(crate) fn kind(&self) -> &str {
        self.rope_type.as_deref().or(self.legacy_type.as_deref()).unwrap_or("default")
    }
}

/// One id or a list of them, as `eos_token_id` is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TokenIds {
    /// One id.
    One(TokenId),
    /// Several ids.
    Many(Vec<TokenId>),
}

impl From<TokenIds> for Vec<TokenId> {
    fn from(ids: TokenIds) -> Self {
        match ids {
            TokenIds::One(id) => vec![id],
            TokenIds::Many(ids) => ids,
        }
    }
}

/// A number, or the largest of a list of them.
fn one_or_largest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number, or a list of numbers")]
    enum Sizes {
        One(usize),
        Many(Vec<usize>),
    }
    Ok(match Sizes::deserialize(deserializer)? {
        Sizes::One(size) => size,
        Sizes::Many(sizes) => sizes.into_iter().max().unwrap_or(0),
    })
}

/// Largest size under any key: far beyond real models, and no product of two of them overflows.
const MAX_SIZE: usize = 1 << 24;
const MAX_LAYERS: usize = 4096;
/// Positions are kept in 32 bits.
const MAX_CONTEXT: usize = 1 << 31;

impl ModelConfig {
    /// Reads `config.json`: of a model with other parts (vision, audio) what it says of the text model, and what the
    /// architecture's own defaults say where it is silent.
    pub(crate) fn from_keys(keys: Map<String, Value>) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            model_type: String,
        }
        let mut keys = text_model(keys)?;
        // First the architecture: an unknown one need not have the keys that this struct asks for.
        let Head { model_type } = from_keys(&keys)?;
        let architecture = crate::architectures::find(&model_type)?;
        for (key, value) in architecture.default_keys()? {
            keys.entry(key).or_insert(value);
        }
        let config = Self { keys: Map::new(), ..from_keys(&keys)? };
        let config = Self { keys, ..config };
        config.check()?;
        Ok(config)
    }

    /// The keys that one architecture alone reads, as a struct that its file defines.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_keys(&self.keys)
    }

    /// Checks what every architecture shares: sizes in range, and nothing asked for that no architecture implements.
    fn check(&self) -> Result<()> {
        let sizes = [
            ("vocab_size", self.vocab_size, MAX_SIZE),
            ("hidden_size", self.hidden_size, MAX_SIZE),
            ("intermediate_size", self.intermediate_size, MAX_SIZE),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            ("num_attention_heads", self.num_attention_heads, MAX_SIZE),
            ("num_key_value_heads", self.num_kv_heads(), MAX_SIZE),
            ("head_dim", self.head_dim.unwrap_or(1), MAX_SIZE),
            ("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT),
            ("sliding_window", self.sliding_window.unwrap_or(1), usize::MAX),
        ];
        for (key, size, most) in sizes {
            if !(1..=most).contains(&size) {
                return Err(invalid(key, size, format!("1 to {most}")));
            }
        }
        if !self.num_attention_heads.is_multiple_of(self.num_kv_heads()) {
            let expected = format!("a divisor of num_attention_heads = {}", self.num_attention_heads);
            return Err(invalid("num_key_value_heads", self.num_kv_heads(), expected));
        }
        let head_dim = self.head_dim.unwrap_or(1);
        if self.num_attention_heads > MAX_SIZE / head_dim {
            let expected = format!("at most {MAX_SIZE} / head_dim = {head_dim}");
            return Err(invalid("num_attention_heads", self.num_attention_heads, expected));
        }
        if !(self.rms_norm_eps > 0.0 && self.rms_norm_eps < 1.0) {
            return Err(invalid("rms_norm_eps", self.rms_norm_eps, "a number between 0 and 1"));
        }
        self.stored_format().map(drop)
    }

    /// How the matrices were quantised before they were written.
    pub(crate) fn quantization(&self) -> Result<Option<Quantization>> {
        self.quantization_config.as_ref().map(Quantization::read).transpose()
    }

    /// The format of matrices that [`crate::ModelFolder::convert`] has quantised.
    pub(crate) fn stored_format(&self) -> Result<Option<WeightFormat>> {
        Ok(match self.quantization()? {
            Some(Quantization::Blocks(format)) => Some(format),
            _ => None,
        })
    }

    /// RoPE's parameters for all layers and the key that they stand under, with what older files write beside them.
    pub(crate) fn rope_parameters(&self) -> (&'static str, RopeParameters) {
        let scaling = self.rope_scaling.as_ref().filter(|scaling| **scaling != RopeParameters::default());
        let (key, parameters) = match (scaling, &self.rope_parameters) {
            (Some(parameters), _) => ("rope_scaling", parameters.clone()),
            (None, Some(parameters)) => ("rope_parameters", parameters.clone()),
            (None, None) => ("rope_parameters", RopeParameters::default()),
        };
        let parameters = RopeParameters {
            rope_theta: parameters.rope_theta.or(self.rope_theta),
            partial_rotary_factor: parameters.partial_rotary_factor.or(self.partial_rotary_factor),
            original_max_position_embeddings: self
                .original_max_position_embeddings
                .or(parameters.original_max_position_embeddings),
            ..parameters
        };
        (key, parameters)
    }

    /// The config without RoPE's parameters, for architectures that read them by themselves.
    pub(crate) fn without_rope(&self) -> Self {
        let (rope_parameters, rope_scaling, partial_rotary_factor) = (None, None, None);
        Self { rope_parameters, rope_scaling, partial_rotary_factor, ..self.clone() }
    }

    /// `head_dim`, or an even share of `hidden_size` where it is absent.
    pub(crate) fn head_dim(&self) -> Result<usize> {
        match self.head_dim {
            Some(head_dim) => Ok(head_dim),
            None if self.hidden_size.is_multiple_of(self.num_attention_heads) => {
                Ok(self.hidden_size / self.num_attention_heads)
            }
            None => {
                let expected =
                    format!("a divisor of hidden_size = {} (head_dim is absent)", self.hidden_size);
                Err(invalid("num_attention_heads", self.num_attention_heads, expected))
            }
        }
    }

    /// The config without biases, for architectures whose reference does not read the keys: tensors of biases stop the load.
    pub(crate) fn without_biases(&self) -> Self {
        Self { attention_bias: false, mlp_bias: false, ..self.clone() }
    }

    /// `num_key_value_heads` with its default.
    pub(crate) fn num_kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }
}

fn from_keys<T: DeserializeOwned>(keys: &Map<String, Value>) -> Result<T> {
    T::deserialize(Value::Object(keys.clone())).map_err(json_error)
}

/// The text models of models with other parts, where it is not the outer `model_type` with `_text` behind it: `model_type` of
/// `sub_configs_defaults` in transformers.
const TEXT_MODELS: [(&str, &str); 3] = [("idefics3", "llama"), ("mistral3", "mistral"), ("smolvlm", "llama")];

/// The keys of the text model: those under `text_config`, where there are such, laid over the outer ones.
///
/// The output head belongs to the outer model: its `tie_word_embeddings` holds, and where it has none, the head is the embedding unless the
/// files have another one ([`Architecture::choose_head`](crate::architectures::Architecture::choose_head)).
fn text_model(mut keys: Map<String, Value>) -> Result<Map<String, Value>> {
    const TIED: &str = "tie_word_embeddings";
    let text = match keys.remove("text_config") {
        None | Some(Value::Null) => return Ok(keys),
        Some(Value::Object(text)) => text,
        Some(other) => return Err(invalid("text_config", other, "an object")),
    };
    if let (None | Some(Value::Null), Some(Value::String(outer))) =
        (text.get("model_type"), keys.get_mut("model_type"))
    {
        match TEXT_MODELS.iter().find(|(whole, _)| whole == outer) {
            Some((_, text)) => *outer = (*text).to_owned(),
            None => outer.push_str("_text"),
        }
    }
    let tied = keys.remove(TIED).filter(|tied| !tied.is_null()).unwrap_or(Value::Bool(true));
    keys.extend(text);
    keys.insert(TIED.to_owned(), tied);
    Ok(keys)
}

pub(crate) fn json_error(source: serde_json::Error) -> Error {
    Error::Json { file: CONFIG_FILE.into(), source }
}

/// An error about a value that makes no sense.
pub(crate) fn invalid(key: &str, value: impl ToString, expected: impl Into<String>) -> Error {
    let (file, key) = (CONFIG_FILE.to_owned(), key.to_owned());
    Error::InvalidValue { file, key, value: shown(&value), expected: expected.into() }
}

/// An error about a value that is not implemented.
pub(crate) fn unsupported(key: &str, value: impl ToString, known: impl Into<String>) -> Error {
    let (file, key) = (CONFIG_FILE.to_owned(), key.to_owned());
    Error::UnsupportedValue { file, key, value: shown(&value), known: known.into() }
}

/// A value as messages have it: the beginning of a long one, and nothing that a terminal would obey.
fn shown(value: &impl ToString) -> String {
    const MOST: usize = 300;
    let text = value.to_string();
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(MOST).collect();
    if text.len() > shown.len() {
        shown.push('…');
    }
    shown
}
