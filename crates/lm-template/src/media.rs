//! Images and audio inside a message.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, general_purpose::PAD};
use serde_json::{Map, Value};

use crate::error::{Error, Result, json_type};
use crate::json_layout::JsonLayout;

const KNOWN: [&str; 3] = ["type", "path", "blob"];

/// Location of the bytes of an image or audio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// A file, which is not opened here.
    Path(PathBuf),
    /// Bytes in the message, base64 in JSON.
    Blob(Vec<u8>),
}

/// An image or audio part of a message: the location of its bytes, and the part's other keys.
#[derive(Clone, PartialEq)]
pub struct Media {
    /// Location of the bytes.
    pub source: MediaSource,
    layout: JsonLayout,
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Media");
        fields.field("source", &self.source);
        if self.layout.unknown().next().is_some() {
            fields.field("others", &self.layout);
        }
        fields.finish()
    }
}

/// Padding is written, and optional when read.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_padding_mode(DecodePaddingMode::Indifferent));

impl Media {
    /// Creates media whose bytes are in a file.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self { source: MediaSource::Path(path.into()), layout: JsonLayout::new(&KNOWN) }
    }

    /// Creates media whose bytes are in the message.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { source: MediaSource::Blob(bytes.into()), layout: JsonLayout::new(&KNOWN) }
    }

    /// Creates media from the base64 of its bytes, as programs write it: with line breaks (MIME, PEM) or on
    /// one line, with padding or without.
    ///
    /// ```
    /// use lm_template::{Media, MediaSource};
    /// let media = Media::from_base64("aGVs\nbG8")?;
    /// assert!(matches!(media.source, MediaSource::Blob(bytes) if *bytes == *b"hello"));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The reason why it is not base64.
    pub fn from_base64(text: &str) -> std::result::Result<Self, String> {
        let text: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        BASE64.decode(text).map(Self::from_bytes).map_err(|error| error.to_string())
    }

    /// The value of a key other than `type`, `path` and `blob`.
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.layout.get(key)
    }

    pub(crate) fn read(object: Map<String, Value>, part: &'static str, at: &str) -> Result<Self> {
        let (layout, [_, path, blob]) = JsonLayout::split(object, &KNOWN);
        let text = |value: Value, key: &str| match value {
            Value::String(text) => Ok(text),
            other => Err(Error::WrongType {
                at: format!("{at}.{key}"),
                expected: "a string",
                got: json_type(&other),
            }),
        };
        let source = match (path, blob) {
            (Some(path), None) => MediaSource::Path(text(path, "path")?.into()),
            (None, Some(blob)) => {
                let read = Self::from_base64(&text(blob, "blob")?);
                read.map_err(|reason| Error::Base64 { at: format!("{at}.blob"), reason })?.source
            }
            _ => return Err(Error::MediaSource { at: at.to_owned(), part }),
        };
        Ok(Self { source, layout })
    }

    pub(crate) fn to_json(&self, part: &'static str) -> Value {
        let (path, blob) = match &self.source {
            MediaSource::Path(path) => (Some(path.to_string_lossy().into_owned().into()), None),
            MediaSource::Blob(bytes) => (None, Some(BASE64.encode(bytes).into())),
        };
        Value::Object(self.layout.fill([("type", Some(part.into())), ("path", path), ("blob", blob)]))
    }
}
