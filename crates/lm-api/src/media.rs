//! Images and audio in requests: their bytes, in base64. Nothing is fetched, and no file is opened.

use lm_template::{Content, Media, Part};
use serde_json::{Map, Value, json};

use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};

/// Code of a content that no model of this stack reads, or that a request may not name.
const UNSUPPORTED: &str = "unsupported_content";

/// Supported audio formats, by their names in `input_audio`. The format itself is detected from the bytes.
const AUDIO: [&str; 4] = ["wav", "mp3", "flac", "ogg"];

/// Formats of `input_audio` by MIME types.
const AUDIO_TYPES: [(&str, &str); 9] = [
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/flac", "flac"),
    ("audio/x-flac", "flac"),
    ("audio/ogg", "ogg"),
    ("audio/vorbis", "ogg"),
];

/// Error of a part of a type that the models do not read, or that the API of the request does not have.
pub(crate) fn unsupported(at: &str, kind: &str, expected: &str) -> ApiError {
    let message = format!("`{at}` is of type `{kind}`, which is not read here; expected {expected}");
    ApiError::invalid_param(format!("{at}.type"), message).with_code(UNSUPPORTED)
}

/// Replaces a part of chat completions that is an image or audio by the part of
/// [`lm_template::messages_from_json`].
///
/// # Errors
/// [`ApiError`] when its bytes are not in it.
pub(crate) fn normalize(part: &mut Value, kind: &str, at: &str) -> Result<()> {
    let (kind, base64) = match kind {
        "image_url" => ("image", image_url(&part["image_url"], &format!("{at}.image_url"))?),
        "input_audio" => ("audio", input_audio(&part["input_audio"], &format!("{at}.input_audio"))?),
        "image" if part["source"].is_object() => {
            let source = &part["source"];
            let at = format!("{at}.source");
            if source["type"] != "base64" {
                let expected = "\"base64\"; nothing is fetched";
                let error = ApiError::unexpected(format!("{at}.type"), shown(&source["type"]), expected);
                return Err(error.with_code(UNSUPPORTED));
            }
            ("image", image_base64(&source["data"], &format!("{at}.data"))?)
        }
        // The form of the Model Context Protocol.
        kind @ ("image" | "audio") if part["data"].is_string() => {
            (kind, image_base64(&part["data"], &format!("{at}.data"))?)
        }
        kind => {
            let blob = text(&part["blob"], &format!("{at}.blob"));
            (kind, blob.map_err(|error| error.with_code(UNSUPPORTED))?.to_owned())
        }
    };
    *part = json!({"type": kind, "blob": base64});
    Ok(())
}

/// Base64 of the bytes of an `image_url`: a data URL, or an object with one.
fn image_url(field: &Value, at: &str) -> Result<String> {
    let (url, at) = match field {
        Value::Object(fields) => (fields.get("url").unwrap_or(&Value::Null), format!("{at}.url")),
        url => (url, at.to_owned()),
    };
    data_url(text(url, &at)?, &at).map(str::to_owned)
}

/// Base64 of an `input_audio`: an object with `data` and `format`.
fn input_audio(field: &Value, at: &str) -> Result<String> {
    let format = &field["format"];
    if !format.is_null() && !format.as_str().is_some_and(|format| AUDIO.contains(&format)) {
        let expected = format!("one of {}", AUDIO.join(", "));
        let error = ApiError::unexpected(format!("{at}.format"), shown(format), expected);
        return Err(error.with_code(UNSUPPORTED));
    }
    let at = format!("{at}.data");
    let data = without_head(text(&field["data"], &at)?);
    decoded(data, &at)?;
    Ok(data.to_owned())
}

/// Base64 of a field that has either that or a data URL, which some clients send in its place.
fn without_head(data: &str) -> &str {
    base64_of_url(data).unwrap_or(data)
}

/// Base64 of a data URL: `data:image/png;base64,…`.
fn base64_of_url(url: &str) -> Option<&str> {
    let (head, data) = url.split_once(',')?;
    let head = head.to_ascii_lowercase();
    (head.starts_with("data:") && head.ends_with(";base64")).then_some(data)
}

/// Base64 of a field that is to be a data URL.
fn data_url<'a>(url: &'a str, at: &str) -> Result<&'a str> {
    base64_of_url(url).ok_or_else(|| {
        let start: String = url.chars().take(24).collect();
        let message = format!(
            "`{at}` begins with {}, expected a data URL in base64, such as data:image/png;base64,…; nothing is fetched from other URLs",
            shown(&start.into())
        );
        ApiError::invalid_param(at, message).with_code(UNSUPPORTED)
    })
}

/// An image of a field named `at`, in base64 or as a data URL.
pub(crate) fn image(data: &Value, at: &str) -> Result<Part> {
    decoded(without_head(text(data, at)?), at).map(Part::Image)
}

/// Checks an image of a field named `at`, and returns its base64.
pub(crate) fn image_base64(data: &Value, at: &str) -> Result<String> {
    let base64 = without_head(text(data, at)?);
    decoded(base64, at)?;
    Ok(base64.to_owned())
}

/// An image or an audio clip of the base64 in a field named `at`.
fn decoded(base64: &str, at: &str) -> Result<Media> {
    Media::from_base64(base64).map_err(|reason| {
        let note = if base64.contains("://") { "; nothing is fetched from URLs" } else { "" };
        ApiError::invalid_param(at, format!("`{at}` is not base64: {reason}{note}"))
    })
}

/// An image as Anthropic's API has it: the `source` of a block.
pub(crate) fn source(fields: &Map<String, Value>, at: &str) -> Result<Part> {
    let at = format!("{at}.source");
    let source = fields.get("source").unwrap_or(&Value::Null);
    match source["type"].as_str() {
        Some("base64") => image(&source["data"], &format!("{at}.data")),
        _ => {
            let message = format!(
                "the `type` of `{at}` is {}, expected \"base64\"; nothing is fetched",
                shown(&source["type"])
            );
            Err(ApiError::invalid_param(format!("{at}.type"), message).with_code(UNSUPPORTED))
        }
    }
}

fn text<'a>(value: &'a Value, at: &str) -> Result<&'a str> {
    value.as_str().ok_or_else(|| ApiError::unexpected(at, json_type(value), "a string"))
}

/// A content with images or audio as parts of chat completions: `text`, `image_url` with a data URL,
/// `input_audio`. Audio of another format is a note. `None` for a content without images and audio.
///
/// ```
/// use lm_api::media_parts;
/// use lm_template::{Content, Media, Part};
///
/// let image = Media::from_base64("AAEC")?.with_mime_type("image/png");
/// let parts = media_parts(&Content::Parts(vec![Part::Image(image)])).expect("an image");
/// assert_eq!(parts[0]["image_url"]["url"], "data:image/png;base64,AAEC");
/// assert_eq!(media_parts(&Content::Text("no image".to_owned())), None);
/// # Ok::<(), String>(())
/// ```
pub fn media_parts(content: &Content) -> Option<Vec<Value>> {
    let parts = content.parts();
    let has_media = parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Audio(_)));
    has_media.then(|| parts.iter().map(openai_part).collect())
}

fn openai_part(part: &Part) -> Value {
    match part {
        Part::Image(media) if let Some(data) = media.to_base64() => {
            let mime_type = media.mime_type().unwrap_or("application/octet-stream");
            json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}})
        }
        Part::Audio(media) if let Some((data, format)) = media.to_base64().zip(audio_format(media)) => {
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        Part::Other(part) => part.clone(),
        part => {
            let text = part.as_text().map(str::to_owned).or_else(|| part.note(None));
            json!({"type": "text", "text": text.unwrap_or_default()})
        }
    }
}

/// Format of an audio clip as `input_audio` names it.
fn audio_format(media: &Media) -> Option<&'static str> {
    let mime_type = media.mime_type()?;
    AUDIO_TYPES.iter().find(|(known, _)| mime_type == *known).map(|(_, format)| *format)
}
