//! Settings of a model's vision part, from `config.json` and the image processor's file.

use std::ops::RangeInclusive;

use lm_formats::{Error as FormatError, ModelFiles, Result, file_names, parse_json};
use lm_media::Normalization;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::{ModelConfig, invalid, shown, unsupported};

/// File of the image processor in checkpoints of transformers 4.
const PREPROCESSOR: &str = "preprocessor_config.json";
/// File of all processors in those of transformers 5; the image processor is under [`IMAGE_PROCESSOR`].
const PROCESSOR: &str = "processor_config.json";
const IMAGE_PROCESSOR: &str = "image_processor";
const VISION: &str = "vision_config";

/// Upper limit of widths, beyond any tower.
pub(crate) const MAX_WIDTH: usize = 1 << 17;
pub(crate) const MAX_LAYERS: usize = 1024;

/// Settings of a vision part: the outer `config.json`, its `vision_config`, and the image processor's file.
pub(crate) struct VisionSettings {
    /// `model_type` of the whole model.
    pub(crate) model_type: String,
    /// Width of the decoder's rows.
    pub(crate) text_width: usize,
    outer: Map<String, Value>,
    vision: Map<String, Value>,
    preprocessor: Map<String, Value>,
    /// Name of the image processor's file, for messages.
    preprocessor_file: &'static str,
}

impl VisionSettings {
    /// Reads `config.json` of a model; `None` if it has no vision part.
    pub(crate) fn read(files: &dyn ModelFiles, config: &ModelConfig) -> Result<Option<Self>> {
        let Some(json) = files.read(file_names::CONFIG)? else { return Ok(None) };
        let mut outer: Map<String, Value> = parse_json(file_names::CONFIG, &json)?;
        let vision = match outer.remove(VISION) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(vision)) => vision,
            Some(other) => return Err(invalid(VISION, other, "an object")),
        };
        let (preprocessor_file, preprocessor) = (PREPROCESSOR, Map::new());
        let model_type = outer.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let text_width = config.hidden_size;
        Ok(Some(Self { model_type, text_width, outer, vision, preprocessor, preprocessor_file }))
    }

    /// Adds the keys of the image processor's file.
    pub(crate) fn with_preprocessor(self, files: &dyn ModelFiles) -> Result<Self> {
        let (preprocessor_file, preprocessor) = preprocessor(files)?;
        Ok(Self { preprocessor_file, preprocessor, ..self })
    }

    /// Keys of `vision_config`; absent ones have the values of `defaults`, a JSON object.
    pub(crate) fn vision<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(file_names::CONFIG, &self.vision, defaults)
    }

    /// Keys of `config.json` itself, as [`VisionSettings::vision`].
    pub(crate) fn outer<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(file_names::CONFIG, &self.outer, defaults)
    }

    /// Keys of the image processor, as [`VisionSettings::vision`].
    pub(crate) fn preprocessor<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(self.preprocessor_file, &self.preprocessor, defaults)
    }

    /// Values of the channels by the image processor's `do_normalize`, `image_mean` and `image_std`; `default` where they are absent.
    pub(crate) fn normalization(&self, default: Normalization) -> Result<Normalization> {
        #[derive(Deserialize)]
        struct Keys {
            do_normalize: Option<bool>,
            image_mean: Option<[f32; 3]>,
            image_std: Option<[f32; 3]>,
        }
        let keys: Keys = self.preprocessor("{}")?;
        self.expect("do_rescale", true)?;
        self.expect("rescale_factor", 1.0 / 255.0)?;
        Ok(match keys.do_normalize {
            Some(false) => Normalization::NONE,
            _ => Normalization {
                mean: keys.image_mean.unwrap_or(default.mean),
                std: keys.image_std.unwrap_or(default.std),
            },
        })
    }

    /// Fails unless a key of the image processor is absent, null or `expected`: another value is preprocessing that is not implemented.
    pub(crate) fn expect(&self, key: &str, expected: impl Into<Value>) -> Result<()> {
        let expected = expected.into();
        match self.preprocessor.get(key) {
            None | Some(Value::Null) => Ok(()),
            Some(value) if *value == expected => Ok(()),
            Some(other) => Err(FormatError::UnsupportedValue {
                file: self.preprocessor_file.to_owned(),
                key: key.to_owned(),
                value: shown(other),
                known: expected.to_string(),
            }),
        }
    }

    /// Error for a value of the image processor.
    pub(crate) fn invalid_preprocessor(
        &self,
        key: &str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> FormatError {
        let (file, key) = (self.preprocessor_file.to_owned(), key.to_owned());
        FormatError::InvalidValue { file, key, value: shown(&value), expected: expected.into() }
    }
}

/// Fails unless a size under `key` of `vision_config` is in the range.
pub(crate) fn check_size(key: &str, size: usize, range: RangeInclusive<usize>) -> Result<()> {
    if range.contains(&size) {
        return Ok(());
    }
    Err(invalid(&format!("{VISION}.{key}"), size, format!("{} to {}", range.start(), range.end())))
}

/// Sizes that all vision transformers have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TowerSizes {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) num_layers: usize,
    pub(crate) num_heads: usize,
    pub(crate) patch: usize,
}

impl TowerSizes {
    /// Checks that the sizes are in range, and that heads divide the width.
    pub(crate) fn check(&self, num_channels: usize, norm_eps: f64) -> Result<()> {
        check_size("hidden_size", self.hidden, 1..=MAX_WIDTH)?;
        check_size("intermediate_size", self.intermediate, 1..=MAX_WIDTH)?;
        check_size("num_hidden_layers", self.num_layers, 1..=MAX_LAYERS)?;
        check_size("num_attention_heads", self.num_heads, 1..=self.hidden)?;
        check_size("patch_size", self.patch, 1..=256)?;
        if !self.hidden.is_multiple_of(self.num_heads) {
            let expected = format!("a divisor of hidden_size = {}", self.hidden);
            return Err(invalid("vision_config.num_attention_heads", self.num_heads, expected));
        }
        if num_channels != 3 {
            return Err(unsupported("vision_config.num_channels", num_channels, "3"));
        }
        if !(norm_eps > 0.0 && norm_eps < 1.0) {
            return Err(invalid("vision_config.layer_norm_eps", norm_eps, "a number between 0 and 1"));
        }
        Ok(())
    }

    /// Numbers of a patch.
    pub(crate) fn patch_len(&self) -> usize {
        3 * self.patch * self.patch
    }
}

/// Keys of the image processor, and the name of their file.
fn preprocessor(files: &dyn ModelFiles) -> Result<(&'static str, Map<String, Value>)> {
    if let Some(json) = files.read(PREPROCESSOR)? {
        return Ok((PREPROCESSOR, parse_json(PREPROCESSOR, &json)?));
    }
    let Some(json) = files.read(PROCESSOR)? else { return Ok((PREPROCESSOR, Map::new())) };
    let mut keys: Map<String, Value> = parse_json(PROCESSOR, &json)?;
    match keys.remove(IMAGE_PROCESSOR) {
        Some(Value::Object(keys)) => Ok((PROCESSOR, keys)),
        _ => Ok((PROCESSOR, Map::new())),
    }
}

fn read<T: DeserializeOwned>(file: &str, keys: &Map<String, Value>, defaults: &str) -> Result<T> {
    let error = |source| FormatError::Json { file: file.to_owned(), source };
    let mut all: Map<String, Value> = serde_json::from_str(defaults).map_err(error)?;
    let present = keys.iter().filter(|(_, value)| !value.is_null());
    all.extend(present.map(|(key, value)| (key.clone(), value.clone())));
    T::deserialize(Value::Object(all)).map_err(error)
}
