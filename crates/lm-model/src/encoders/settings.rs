//! Settings of an encoder: `config.json`, and the file of its preprocessing.

use std::ops::RangeInclusive;

use lm_formats::{Error as FormatError, ModelFiles, Result, file_names, parse_json};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::{ModelConfig, invalid, shown};
use crate::gguf::ProjectorConfig;

/// File of one processor in checkpoints of transformers 4.
const PREPROCESSOR: &str = "preprocessor_config.json";
/// File of all processors in those of transformers 5, each under a key of its own.
const PROCESSOR: &str = "processor_config.json";

/// Upper limit of widths, beyond any encoder.
pub(crate) const MAX_WIDTH: usize = 1 << 17;
pub(crate) const MAX_LAYERS: usize = 1024;

/// Keys under which files have the settings of an encoder of one modality.
#[derive(Clone, Copy)]
pub(crate) struct SettingsKeys {
    /// Of `config.json`; the first that is present counts.
    pub(crate) config: &'static [&'static str],
    /// Of `processor_config.json`.
    pub(crate) processor: &'static [&'static str],
}

/// Settings of an encoder: the outer `config.json`, the encoder's own part of it, and the file of the
/// preprocessing.
pub(crate) struct EncoderSettings {
    /// `model_type` of the whole model.
    pub(crate) model_type: String,
    /// Width of the decoder's rows.
    pub(crate) text_width: usize,
    outer: Map<String, Value>,
    encoder: Map<String, Value>,
    preprocessor: Map<String, Value>,
    /// Name of the preprocessing's file, for messages.
    preprocessor_file: String,
}

impl EncoderSettings {
    /// Reads `config.json` of a model; `None` if it has no encoder under these keys.
    pub(crate) fn read(
        files: &dyn ModelFiles,
        config: &ModelConfig,
        keys: SettingsKeys,
    ) -> Result<Option<Self>> {
        let Some(json) = files.read(file_names::CONFIG)? else { return Ok(None) };
        let mut outer: Map<String, Value> = parse_json(file_names::CONFIG, &json)?;
        let present = |key: &&&str| outer.get(**key).is_some_and(|value| !value.is_null());
        let Some(&key) = keys.config.iter().find(present) else { return Ok(None) };
        let encoder = match outer.remove(key) {
            Some(Value::Object(encoder)) => encoder,
            other => return Err(invalid(key, other.unwrap_or_default(), "an object")),
        };
        let (preprocessor_file, preprocessor) = (PREPROCESSOR.to_owned(), Map::new());
        let model_type = outer.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let text_width = config.hidden_size;
        Ok(Some(Self { model_type, text_width, outer, encoder, preprocessor, preprocessor_file }))
    }

    /// Adds the keys of the preprocessing's file.
    pub(crate) fn with_preprocessor(self, files: &dyn ModelFiles, keys: SettingsKeys) -> Result<Self> {
        let (preprocessor_file, preprocessor) = preprocessor(files, keys)?;
        Ok(Self { preprocessor_file: preprocessor_file.to_owned(), preprocessor, ..self })
    }

    /// Settings of an `mmproj` file.
    pub(crate) fn of_projector(
        file: &str,
        model_type: &str,
        text_width: usize,
        config: ProjectorConfig,
    ) -> Self {
        let ProjectorConfig { vision: encoder, outer, preprocessor } = config;
        let (model_type, preprocessor_file) = (model_type.to_owned(), file.to_owned());
        Self { model_type, text_width, outer, encoder, preprocessor, preprocessor_file }
    }

    /// Keys of the encoder's part of `config.json`; absent ones have the values of `defaults`, a JSON object.
    pub(crate) fn encoder<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(file_names::CONFIG, &self.encoder, defaults)
    }

    /// Keys of `config.json` itself, as [`EncoderSettings::encoder`].
    pub(crate) fn outer<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(file_names::CONFIG, &self.outer, defaults)
    }

    /// Keys of the preprocessing, as [`EncoderSettings::encoder`].
    pub(crate) fn preprocessor<T: DeserializeOwned>(&self, defaults: &str) -> Result<T> {
        read(&self.preprocessor_file, &self.preprocessor, defaults)
    }

    /// Fails unless a key of the preprocessing is absent, null or `expected`: another value is preprocessing
    /// that is not implemented.
    pub(crate) fn expect(&self, key: &str, expected: impl Into<Value>) -> Result<()> {
        let expected = expected.into();
        match self.preprocessor.get(key) {
            None | Some(Value::Null) => Ok(()),
            Some(value) if same(value, &expected) => Ok(()),
            Some(other) => Err(FormatError::UnsupportedValue {
                file: self.preprocessor_file.clone(),
                key: key.to_owned(),
                value: shown(other),
                known: expected.to_string(),
            }),
        }
    }

    /// Error for a value of the preprocessing.
    pub(crate) fn invalid_preprocessor(
        &self,
        key: &str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> FormatError {
        let (file, key) = (self.preprocessor_file.clone(), key.to_owned());
        FormatError::InvalidValue { file, key, value: shown(&value), expected: expected.into() }
    }
}

/// Fails unless a size is in the range; `key` is its path in `config.json`.
pub(crate) fn check_size(key: &str, size: usize, range: RangeInclusive<usize>) -> Result<()> {
    if range.contains(&size) {
        return Ok(());
    }
    Err(invalid(key, size, format!("{} to {}", range.start(), range.end())))
}

/// Fails unless a number is in the range; `key` is its path in `config.json`.
pub(crate) fn check_number(key: &str, number: f64, range: RangeInclusive<f64>) -> Result<()> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(invalid(key, number, format!("{:?} to {:?}", range.start(), range.end())))
}

/// Compares values; numbers by value, since 0 is also written as 0.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Keys of the preprocessing, and the name of their file: those of the common file have priority, as in
/// transformers.
fn preprocessor(files: &dyn ModelFiles, keys: SettingsKeys) -> Result<(&'static str, Map<String, Value>)> {
    if let Some(json) = files.read(PROCESSOR)? {
        let mut all: Map<String, Value> = parse_json(PROCESSOR, &json)?;
        for key in keys.processor {
            if let Some(Value::Object(own)) = all.remove(*key) {
                return Ok((PROCESSOR, own));
            }
        }
    }
    match files.read(PREPROCESSOR)? {
        Some(json) => Ok((PREPROCESSOR, parse_json(PREPROCESSOR, &json)?)),
        None => Ok((PREPROCESSOR, Map::new())),
    }
}

fn read<T: DeserializeOwned>(file: &str, keys: &Map<String, Value>, defaults: &str) -> Result<T> {
    let error = |source| FormatError::Json { file: file.to_owned(), source };
    let mut all: Map<String, Value> = serde_json::from_str(defaults).map_err(error)?;
    let present = keys.iter().filter(|(_, value)| !value.is_null());
    all.extend(present.map(|(key, value)| (key.clone(), value.clone())));
    T::deserialize(Value::Object(all)).map_err(error)
}
