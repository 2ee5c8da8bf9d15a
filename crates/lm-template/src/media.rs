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

/// Key of the declared MIME type.
pub(crate) const MIME_TYPE: &str = "mime_type";

/// MIME types by the first bytes of a file, and by those from the eighth on.
const SIGNATURES: [(&[u8], &[u8], &str); 9] = [
    (b"\x89PNG", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"BM", b"", "image/bmp"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"fLaC", b"", "audio/flac"),
    (b"OggS", b"", "audio/ogg"),
    (b"ID3", b"", "audio/mpeg"),
];

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

    /// Base64 of the bytes, on one line and with padding; `None` for media in a file.
    pub fn to_base64(&self) -> Option<String> {
        match &self.source {
            MediaSource::Blob(bytes) => Some(BASE64.encode(bytes)),
            MediaSource::Path(_) => None,
        }
    }

    /// Sets the MIME type that the media's sender declares, the key `mime_type`.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.layout.set(MIME_TYPE.to_owned(), mime_type.into().into());
        self
    }

    /// The declared MIME type, or that of the bytes; `None` if neither is known.
    pub fn mime_type(&self) -> Option<&str> {
        let detected = || match &self.source {
            MediaSource::Blob(bytes) => detected(bytes),
            MediaSource::Path(_) => None,
        };
        self.extra(MIME_TYPE).and_then(Value::as_str).or_else(detected)
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
        let path = match &self.source {
            MediaSource::Path(path) => Some(path.to_string_lossy().into_owned().into()),
            MediaSource::Blob(_) => None,
        };
        let blob = self.to_base64().map(Value::String);
        Value::Object(self.layout.fill([("type", Some(part.into())), ("path", path), ("blob", blob)]))
    }
}

fn detected(bytes: &[u8]) -> Option<&'static str> {
    let inner = bytes.get(8..).unwrap_or_default();
    let is = |start: &[u8], then: &[u8]| bytes.starts_with(start) && inner.starts_with(then);
    SIGNATURES.iter().find(|(start, then, _)| is(start, then)).map(|(_, _, kind)| *kind)
}
