//! Settings of a model: `config.json` and `generation_config.json`.

mod compressed_tensors;
mod generation;
mod quantization;

pub use self::generation::GenerationConfig;
pub(crate) use self::quantization::{CodePacking, GroupFormat, Quantization, describe};

use lm_formats::{Error, Result, file_names};
use lm_kernels::WeightFormat;
use lm_tokenizer::TokenId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Keys of a decoder's `config.json` that architectures share. Keys of a single architecture are read in its
/// file; unknown keys are ignored.
#[derive(Clone, Debug, Deserialize)]
pub struct ModelConfig {
    /// Name of the architecture: `llama`, `qwen3`.
    pub model_type: String,
    /// Number of rows of the embedding table.
    pub vocab_size: usize,
    /// Width of a row between the blocks.
    pub hidden_size: usize,
    /// Width inside the feed-forward block; the maximum, where a file lists one for each layer.
    #[serde(deserialize_with = "one_or_largest")]
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key/value heads; `num_attention_heads` where absent.
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; the default depends on the architecture.
    pub head_dim: Option<usize>,
    /// Maximum sequence length.
    pub max_position_embeddings: usize,
    /// Epsilon added to the mean square in RMS norms.
    pub rms_norm_eps: f64,
    /// Activation of the feed-forward gate; `silu` where absent.
    pub hidden_act: Option<String>,
    /// True if the output head shares the embedding matrix.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// True if the four projections of attention have a bias.
    #[serde(default)]
    pub attention_bias: bool,
    /// True if the feed-forward projections have a bias.
    #[serde(default)]
    pub mlp_bias: bool,
    /// RoPE base (theta) as older files write it.
    pub rope_theta: Option<f64>,
    /// RoPE scaling as older files write it; takes precedence over `rope_parameters`.
    pub rope_scaling: Option<RopeParameters>,
    /// RoPE base and scaling as transformers 5 writes them; its base takes precedence over `rope_theta`.
    pub rope_parameters: Option<RopeParameters>,
    /// Fraction of a head that is rotated (partial rotary).
    pub partial_rotary_factor: Option<f64>,
    /// Context length of the original training; takes precedence over the value among the RoPE parameters.
    pub original_max_position_embeddings: Option<f64>,
    /// True if `sliding_window` applies at all.
    #[serde(default)]
    pub use_sliding_window: bool,
    /// Slots that a sliding-window layer attends to, the query itself included.
    pub sliding_window: Option<usize>,
    /// First layer with a sliding window, where `layer_types` is absent.
    pub max_window_layers: Option<usize>,
    /// `full_attention` or `sliding_attention` for each layer.
    pub layer_types: Option<Vec<String>>,
    /// End-of-sequence ids, where `generation_config.json` has none.
    pub eos_token_id: Option<TokenIds>,
    /// Description of the stored weights' quantisation: of [`crate::ModelFolder::convert`] (`lm`), or `awq`,
    /// `compressed-tensors`, `fp8`, `gptq`, `mxfp4`.
    pub quantization_config: Option<Value>,
    /// Every key, those above included.
    #[serde(skip)]
    pub(crate) keys: Map<String, Value>,
}

/// RoPE base and scaling: the value of `rope_parameters` or `rope_scaling`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RopeParameters {
    /// `default`, `dynamic`, `linear`, `llama3`, `longrope`, `proportional` or `yarn`.
    pub rope_type: Option<String>,
    /// The same under its legacy name.
    #[serde(rename = "type")]
    pub legacy_type: Option<String>,
    /// Base (theta) of the frequencies.
    pub rope_theta: Option<f64>,
    /// Fraction of a head that is rotated (partial rotary).
    pub partial_rotary_factor: Option<f64>,
    /// Scaling factor: ratio of the extended context to the original one; divides the frequencies.
    pub factor: Option<f64>,
    /// Context length of the original training.
    pub original_max_position_embeddings: Option<f64>,
    /// `llama3`: wavelengths above the original context divided by this are fully scaled.
    pub low_freq_factor: Option<f64>,
    /// `llama3`: wavelengths below the original context divided by this are not scaled.
    pub high_freq_factor: Option<f64>,
    /// `yarn`: minimum number of rotations within the original context of an unscaled frequency. Default: 32.
    pub beta_fast: Option<f64>,
    /// `yarn`: maximum number of rotations within the original context of a fully scaled frequency.
    /// Default: 1.
    pub beta_slow: Option<f64>,
    /// `yarn`: weight in the numerator of the factor on sine and cosine.
    pub mscale: Option<f64>,
    /// `yarn`: weight in the denominator of that factor.
    pub mscale_all_dim: Option<f64>,
    /// `yarn`: true if the bounds of the ramp are rounded to whole pairs. Default: true.
    pub truncate: Option<bool>,
    /// `yarn`, `longrope`: factor on sine and cosine; overrides the one computed from the other parameters.
    pub attention_factor: Option<f64>,
    /// `longrope`: divisors of the frequencies for sequences within the original context.
    pub short_factor: Option<Vec<f64>>,
    /// `longrope`: divisors of the frequencies for longer sequences.
    pub long_factor: Option<Vec<f64>>,
    /// All other keys: ignored with a warning, as in transformers.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl RopeParameters {
    /// Type of scaling; `default` where absent.
    pub(crate) fn kind(&self) -> &str {
        self.rope_type.as_deref().or(self.legacy_type.as_deref()).unwrap_or("default")
    }
}

/// One id or a list of ids, as in `eos_token_id`.
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

/// Deserialises a number, or the maximum of a list of numbers.
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

/// Upper limit of sizes under any key: far beyond real models, and no product of two of them overflows.
const MAX_SIZE: usize = 1 << 24;
pub(crate) const MAX_LAYERS: usize = 4096;
/// Positions are stored in 32 bits.
const MAX_CONTEXT: usize = 1 << 31;

impl ModelConfig {
    /// Reads `config.json`. Of a multimodal model (vision, audio) it takes the text model's keys, which
    /// `complete` completes by the `model_type`.
    pub(crate) fn from_keys(
        keys: Map<String, Value>,
        complete: impl FnOnce(&str, &mut Map<String, Value>) -> Result<()>,
    ) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            model_type: String,
        }
        let mut keys = text_model(keys)?;
        // The architecture is checked first: an unknown one may lack the keys that this struct requires.
        let Head { model_type } = from_keys(&keys)?;
        complete(&model_type, &mut keys)?;
        let config = Self { keys: Map::new(), ..from_keys(&keys)? };
        let config = Self { keys, ..config };
        config.check()?;
        Ok(config)
    }

    /// Reads the keys of a single architecture into a struct that its file defines.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_keys(&self.keys)
    }

    /// Checks the keys that all architectures share: sizes in range, and no value that no architecture
    /// implements.
    fn check(&self) -> Result<()> {
        // Qwen2 MoE's config class writes 0 beside it.
        let has_no_window = self.keys.get("use_sliding_window") == Some(&Value::Bool(false));
        let window = self.sliding_window.filter(|_| !has_no_window);
        let sizes = [
            ("vocab_size", self.vocab_size, MAX_SIZE),
            ("hidden_size", self.hidden_size, MAX_SIZE),
            ("intermediate_size", self.intermediate_size, MAX_SIZE),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            ("num_attention_heads", self.num_attention_heads, MAX_SIZE),
            ("num_key_value_heads", self.num_kv_heads(), MAX_SIZE),
            ("head_dim", self.head_dim.unwrap_or(1), MAX_SIZE),
            ("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT),
            ("sliding_window", window.unwrap_or(1), usize::MAX),
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

    /// Checks a size under the key of a single architecture.
    pub(crate) fn size_of(key: &str, size: usize) -> Result<usize> {
        match size {
            1..=MAX_SIZE => Ok(size),
            _ => Err(invalid(key, size, format!("1 to {MAX_SIZE}"))),
        }
    }

    /// Returns the config with the epsilon of its norms under another key.
    pub(crate) fn with_norm_eps(&self, key: &str) -> Result<Self> {
        match self.keys.get(key).and_then(Value::as_f64) {
            Some(rms_norm_eps) if rms_norm_eps > 0.0 && rms_norm_eps < 1.0 => {
                Ok(Self { rms_norm_eps, ..self.clone() })
            }
            _ => {
                let value = self.keys.get(key).map_or_else(|| "absent".to_owned(), Value::to_string);
                Err(invalid(key, value, "a number between 0 and 1"))
            }
        }
    }

    /// Quantisation of the stored matrices.
    pub(crate) fn quantization(&self) -> Result<Option<Quantization>> {
        self.quantization_config.as_ref().map(Quantization::read).transpose()
    }

    /// Block format of matrices that [`crate::ModelFolder::convert`] has quantised.
    pub(crate) fn stored_format(&self) -> Result<Option<WeightFormat>> {
        Ok(match self.quantization()? {
            Some(Quantization::Blocks(format)) => Some(format),
            _ => None,
        })
    }

    /// Returns the RoPE parameters of all layers and their key, merged with the parameters that older files
    /// keep at the top level.
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

    /// Returns the config without RoPE parameters, for architectures that read them themselves.
    pub(crate) fn without_rope(&self) -> Self {
        let (rope_parameters, rope_scaling, partial_rotary_factor) = (None, None, None);
        Self { rope_parameters, rope_scaling, partial_rotary_factor, ..self.clone() }
    }

    /// `head_dim`; where it is absent, `hidden_size` divided by the number of heads.
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

    /// Returns the config without biases, for architectures whose reference ignores the keys; bias tensors
    /// then fail the load.
    pub(crate) fn without_biases(&self) -> Self {
        Self { attention_bias: false, mlp_bias: false, ..self.clone() }
    }

    /// `num_key_value_heads`, or its default.
    pub(crate) fn num_kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }
}

fn from_keys<T: DeserializeOwned>(keys: &Map<String, Value>) -> Result<T> {
    T::deserialize(Value::Object(keys.clone())).map_err(json_error)
}

/// Text models of multimodal models, where the name is not the outer `model_type` plus `_text`: `model_type`
/// of `sub_configs_defaults` in transformers.
const TEXT_MODELS: [(&str, &str); 3] = [("idefics3", "llama"), ("mistral3", "mistral"), ("smolvlm", "llama")];

/// Returns the keys of the text model: those under `text_config`, if any, override the outer ones.
///
/// The output head belongs to the outer model, so its `tie_word_embeddings` applies. Without the key, the
/// head is tied to the embedding unless the files have another head (`Architecture::choose_head`).
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
    Error::Json { file: file_names::CONFIG.into(), source }
}

/// Error for an invalid value.
pub(crate) fn invalid(key: &str, value: impl ToString, expected: impl Into<String>) -> Error {
    let (file, key) = (file_names::CONFIG.to_owned(), key.to_owned());
    Error::InvalidValue { file, key, value: shown(&value), expected: expected.into() }
}

/// Error for a value that is not implemented.
pub(crate) fn unsupported(key: &str, value: impl ToString, known: impl Into<String>) -> Error {
    let (file, key) = (file_names::CONFIG.to_owned(), key.to_owned());
    Error::UnsupportedValue { file, key, value: shown(&value), known: known.into() }
}

/// Formats a value for messages: long ones are truncated, control characters removed.
pub(crate) fn shown(value: &impl ToString) -> String {
    const MOST: usize = 300;
    let text = value.to_string();
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(MOST).collect();
    if text.len() > shown.len() {
        shown.push('…');
    }
    shown
}
