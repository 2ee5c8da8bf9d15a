//! Metadata of an `mmproj` file.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use lm_formats::{Error, GgufMetadata, GgufProblem, GgufShard, GgufTensor, GgufValue, Result};
use serde_json::Value;

use super::{GgufProjector, decimal};
use crate::config::shown;

/// Prefix of the keys of images.
const VISION: &str = "clip.vision.";

/// Keys without effect here: those of audio, and of other parts whose presence early converters recorded.
const HARMLESS: &[&str] = &[
    "clip.has_audio_encoder",
    "clip.has_llava_projector",
    "clip.has_qwen2vl_merger",
    "clip.has_text_encoder",
];

/// Metadata and tensors of an `mmproj` file. Keys are written without `clip.vision.`, except by
/// [`Clip::flag`].
pub(crate) struct Clip<'a> {
    pub(crate) shard: &'a GgufShard,
    tensors: BTreeMap<&'a str, &'a GgufTensor>,
    read: RefCell<BTreeSet<String>>,
}

impl<'a> Clip<'a> {
    pub(crate) fn new(shard: &'a GgufShard) -> Self {
        let tensors = shard.file.tensors().iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        Self { shard, tensors, read: RefCell::default() }
    }

    fn metadata(&self) -> &'a GgufMetadata {
        self.shard.file.metadata()
    }

    fn reading(&self, key: String) -> String {
        self.read.borrow_mut().insert(key.clone());
        key
    }

    /// `clip.projector_type`, or that of images where the file has audio clips, too.
    pub(crate) fn projector_type(&self) -> Result<&'a str> {
        let key = self.reading(format!("{VISION}projector_type"));
        match self.metadata().str(&key)? {
            Some(of_images) => Ok(of_images),
            None => self.metadata().required(&self.reading("clip.projector_type".into()), GgufMetadata::str),
        }
    }

    /// The bool `clip.NAME`; false where it is absent.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.metadata().bool(&self.reading(format!("clip.{name}")))?.unwrap_or(false))
    }

    pub(crate) fn size(&self, key: &str) -> Result<Option<usize>> {
        self.metadata().size(&self.reading(format!("{VISION}{key}")))
    }

    pub(crate) fn required_size(&self, key: &str) -> Result<usize> {
        self.metadata().required(&self.reading(format!("{VISION}{key}")), GgufMetadata::size)
    }

    pub(crate) fn bools(&self, key: &str) -> Result<Option<Vec<bool>>> {
        self.metadata().bools(&self.reading(format!("{VISION}{key}")))
    }

    /// The three numbers of the channels.
    pub(crate) fn channels(&self, key: &str) -> Result<Option<[f32; 3]>> {
        let key = self.reading(format!("{VISION}{key}"));
        let Some(numbers) = self.metadata().floats(&key)? else { return Ok(None) };
        let three =
            <[f32; 3]>::try_from(numbers.as_slice()).ok().filter(|all| all.iter().all(|n| n.is_finite()));
        let error = || self.metadata().invalid(&key, shown(&format!("{numbers:?}")), "three finite numbers");
        three.map(Some).ok_or_else(error)
    }

    /// A size or a float as JSON.
    pub(crate) fn json(&self, key: &str) -> Result<Option<Value>> {
        let key = self.reading(format!("{VISION}{key}"));
        match self.metadata().value(&key)? {
            Some(GgufValue::Float(number)) => {
                let error = || self.metadata().invalid(&key, number, "a finite number");
                Ok(Some(decimal(number).ok_or_else(error)?.into()))
            }
            _ => Ok(self.metadata().size(&key)?.map(Value::from)),
        }
    }

    /// A tensor of the file.
    pub(crate) fn tensor(&self, name: &str) -> Option<&'a GgufTensor> {
        self.tensors.get(name).copied()
    }

    /// Rows of a tensor.
    ///
    /// # Errors
    /// When no tensor is found.
    pub(crate) fn rows(&self, name: &str) -> Result<usize> {
        let missing = || Error::MissingTensor { location: self.shard.name.clone(), tensor: name.to_owned() };
        self.tensor(name).and_then(|tensor| tensor.shape.first()).copied().ok_or_else(missing)
    }

    /// Inner width of a feed-forward block: the dimension of its first projection that is not the tower's
    /// width.
    ///
    /// # Errors
    /// When the matrix is missing.
    pub(crate) fn inner_width(&self, name: &str) -> Result<usize> {
        let rows = self.rows(name)?;
        let width = self.required_size("embedding_length")?;
        let cols = self.tensor(name).and_then(|tensor| tensor.shape.get(1)).copied().unwrap_or(width);
        Ok(if cols == width { rows } else { cols })
    }

    /// Error for an invalid value.
    pub(crate) fn invalid(&self, key: &str, value: impl ToString, expected: impl Into<String>) -> Error {
        self.metadata().invalid(&format!("{VISION}{key}"), shown(&value), expected)
    }

    /// Fails if a key under `clip.` has not been read, unless it is about audio or has no effect.
    pub(crate) fn refuse_unread(&self, rules: &GgufProjector) -> Result<()> {
        let harmless = |key: &str| {
            let own = key.strip_prefix(VISION);
            key.starts_with("clip.audio.")
                || HARMLESS.contains(&key)
                || own.is_some_and(|own| rules.harmless.iter().any(|row| row.0 == own))
        };
        let unread =
            |key: &str| key.starts_with("clip.") && !self.read.borrow().contains(key) && !harmless(key);
        let Some((key, _)) = self.metadata().keys().find(|(key, _)| unread(key)) else { return Ok(()) };
        let value = match self.metadata().value(key)? {
            Some(GgufValue::Int(number)) => number.to_string(),
            Some(GgufValue::Float(number)) => number.to_string(),
            Some(GgufValue::Bool(truth)) => truth.to_string(),
            Some(GgufValue::Text(text)) => shown(&String::from_utf8_lossy(text)),
            None => "a list".to_owned(),
        };
        let problem = GgufProblem::Unused { name: key.to_owned(), value };
        Err(Error::Gguf { file: self.shard.name.clone(), problem })
    }
}
