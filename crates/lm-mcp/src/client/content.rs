//! Results of MCP tools as tool results of this crate.

use lm_template::{Content, Media, Part};
use lm_tools::{ToolError, Value};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Converts the result of a call: the structured content, and then the other parts with images and audio in
/// their places, without texts that only repeat the structured content. Content that a tool message has no
/// place for is described in brackets. An error of the tool is an error with its text.
pub(super) fn result(result: CallToolResult) -> Result<Value, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let text = Content::Parts(joined(content.iter().flat_map(parts))).text_with_notes();
        let text = match structured_content {
            Some(structured) if text.is_empty() => structured.to_string(),
            _ => text,
        };
        return Err(ToolError::failed(if text.is_empty() {
            "the tool failed without a message"
        } else {
            &text
        }));
    }
    let Some(structured) = structured_content else {
        return Ok(value(joined(content.iter().flat_map(parts))));
    };
    let repeats = repeats(&content, &structured);
    let others = content.iter().filter(|block| block.as_text().is_none() || !repeats);
    let others: Vec<_> = others.flat_map(parts).collect();
    if others.is_empty() {
        return Ok(structured);
    }
    Ok(value(joined(std::iter::once(Part::Text(structured.to_string())).chain(others))))
}

/// Returns true if the texts of a result say only its structured content, or nothing. Servers that wrap a
/// value as `{"result": VALUE}` send a text of the value alone, or of each of its items.
fn repeats(content: &[ContentBlock], structured: &Value) -> bool {
    let texts = content.iter().filter_map(|block| block.as_text()).map(|text| text.text.trim());
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    let wrapped = structured.as_object().filter(|members| members.len() == 1);
    let wrapped = wrapped.and_then(|members| members.get("result"));
    let says = |value: &Value| match (texts.as_slice(), value) {
        ([], _) => true,
        ([text], value) if is_text_of(text, value) => true,
        (texts, Value::Array(items)) => {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, item)| is_text_of(text, item))
        }
        _ => false,
    };
    says(structured) || wrapped.is_some_and(says)
}

/// Returns true if a text is the JSON of a value, or the value itself.
fn is_text_of(text: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|value| value.trim() == text)
        || serde_json::from_str(text).is_ok_and(|read: Value| read == *value)
}

/// Puts line breaks between parts.
pub(super) fn joined(parts: impl Iterator<Item = Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for (index, part) in parts.enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        match (joined.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => *before += &format!("{gap}{text}"),
            (Some(Part::Text(before)), medium) => {
                *before += gap;
                joined.push(medium);
            }
            (_, Part::Text(text)) => joined.push(Part::Text(format!("{gap}{text}"))),
            (None, medium) => joined.push(medium),
            (Some(_), medium) => joined.extend([Part::Text(gap.to_owned()), medium]),
        }
    }
    joined
}

/// A text, or a list of parts if there are media among them.
fn value(mut parts: Vec<Part>) -> Value {
    match (parts.pop(), parts.is_empty()) {
        (None, _) => Value::String(String::new()),
        (Some(Part::Text(text)), true) => Value::String(text),
        (Some(last), _) => parts.iter().chain([&last]).map(Part::to_json).collect(),
    }
}

/// The text of a block, its image or audio, or a description of it.
pub(super) fn parts(block: &ContentBlock) -> Vec<Part> {
    match block {
        ContentBlock::Text(text) => vec![Part::Text(text.text.clone())],
        ContentBlock::Image(image) => vec![medium("image", &image.mime_type, &image.data)],
        ContentBlock::Audio(audio) => vec![medium("audio", &audio.mime_type, &audio.data)],
        ContentBlock::Resource(resource) => embedded(&resource.resource),
        ContentBlock::ResourceLink(link) => {
            let title = link.title.as_ref().unwrap_or(&link.name);
            let kind = link.mime_type.iter().map(|kind| format!(", {kind}"));
            let size = link.size.iter().map(|size| format!(", {size} bytes"));
            let about = link.description.iter().map(|about| format!(": {about}"));
            let about = kind.chain(size).chain(about).collect::<String>();
            vec![Part::Text(format!("[link to {} ({title}{about})]", link.uri))]
        }
        other => vec![unknown(other)],
    }
}

/// The text of a resource, its image or audio after its address, or a description of it.
pub(super) fn embedded(resource: &ResourceContents) -> Vec<Part> {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            vec![Part::Text(format!("[{uri}]\n{text}"))]
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime_type = mime_type.as_deref().unwrap_or("unknown type");
            match mime_type.split_once('/') {
                Some((kind @ ("image" | "audio"), _)) => {
                    vec![Part::Text(format!("[{uri}]")), medium(kind, mime_type, blob)]
                }
                _ => {
                    vec![Part::Text(format!("[{uri}: {mime_type}, {} bytes, not shown]", decoded_len(blob)))]
                }
            }
        }
        other => vec![unknown(other)],
    }
}

/// An image or an audio clip, or a note in place of one that is not base64.
fn medium(kind: &str, mime_type: &str, data: &str) -> Part {
    match Media::from_base64(data).map(|media| media.with_mime_type(mime_type)) {
        Ok(media) if kind == "image" => Part::Image(media),
        Ok(media) => Part::Audio(media),
        Err(reason) => {
            let size = decoded_len(data);
            Part::Text(format!(
                "[{kind}: {mime_type}, {size} bytes, not shown: its base64 is broken: {reason}]"
            ))
        }
    }
}

fn unknown(content: &impl serde::Serialize) -> Part {
    Part::Text(format!("[content of an unknown kind: {}]", kind(content)))
}

/// The `type` of a block that this version of the protocol does not have, or its keys.
fn kind(block: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(block).unwrap_or_default();
    let keys = || {
        json.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect::<Vec<_>>().join(", ")
    };
    json["type"].as_str().map_or_else(keys, str::to_owned)
}

/// Number of bytes encoded by base64 text.
fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|&byte| byte == b'=').count();
    (base64.len() * 3 / 4).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::Resource;
    use serde_json::json;

    fn read(json: Value) -> Result<Value, ToolError> {
        result(serde_json::from_value(json).expect("a result"))
    }

    #[test]
    fn texts_are_joined_and_structured_content_comes_first() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(read(json!({"content": [text("a"), text("b")]})), Ok(json!("a\nb")));
        assert_eq!(read(json!({"content": []})), Ok(json!("")));
        let structured = json!({"content": [text("{\"n\":1}")], "structuredContent": {"n": 1}});
        assert_eq!(read(structured), Ok(json!({"n": 1})));
    }

    #[test]
    fn texts_beside_structured_content_are_kept_unless_they_repeat_it() {
        let of = |texts: &[&str], structured: Value| {
            let content: Vec<Value> = texts.iter().map(|each| text(each)).collect();
            read(json!({"content": content, "structuredContent": structured})).expect("a result")
        };
        for (texts, structured) in [
            (&[][..], json!({"n": 1})),
            (&[" \n"], json!({"n": 1})),
            (&["{ \"b\": [2],\n \"a\": 1 }"], json!({"a": 1, "b": [2]})),
            (&["Sunny."], json!({"result": "Sunny."})),
            (&["42"], json!({"result": 42})),
            (&["a", "{\"n\":1}"], json!({"result": ["a", {"n": 1}]})),
            (&["null"], json!(null)),
        ] {
            assert_eq!(of(texts, structured.clone()), structured, "{texts:?}");
        }
        let both = of(&["Warm today.", "Cold tomorrow."], json!({"degrees": 21}));
        assert_eq!(both, "{\"degrees\":21}\nWarm today.\nCold tomorrow.");
        assert_eq!(of(&["{\"n\":2}"], json!({"n": 1})), "{\"n\":1}\n{\"n\":2}");
        assert_eq!(of(&["a"], json!({"result": ["a", "b"]})), "{\"result\":[\"a\",\"b\"]}\na");
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn media_are_parts_in_their_places() {
        let png = json!({"type": "image", "blob": "AAECAw==", "mime_type": "image/png"});
        let wav = json!({"type": "audio", "blob": "AAEC", "mime_type": "audio/wav"});
        let image = json!({"type": "image", "data": "AAECAw==", "mimeType": "image/png"});
        let audio = json!({"type": "audio", "data": "AAEC", "mimeType": "audio/wav"});
        assert_eq!(read(json!({"content": [image]})), Ok(json!([png])));
        let all = json!({"content": [text("a"), text("b"), image, audio, text("c")]});
        let parts = json!([text("a\nb\n"), png, text("\n"), wav, text("\nc")]);
        assert_eq!(read(all), Ok(parts.clone()));
        let notes = Content::of_result(parts).text_with_notes();
        let notes_expected =
            "a\nb\n[image: image/png, 4 bytes, not shown]\n[audio: audio/wav, 3 bytes, not shown]\nc";
        assert_eq!(notes, notes_expected);
        let repeated = json!({"content": [text("{\"n\": 1}"), image], "structuredContent": {"n": 1}});
        assert_eq!(read(repeated), Ok(json!([text("{\"n\":1}\n"), png])));
        let other = json!({"content": [image, text("a")], "structuredContent": {"n": 1}});
        assert_eq!(read(other), Ok(json!([text("{\"n\":1}\n"), png, text("\na")])));
        let resource = json!({"uri": "a://b", "blob": "AAECAw==", "mimeType": "image/png"});
        let embedded = read(json!({"content": [{"type": "resource", "resource": resource}]}));
        assert_eq!(embedded, Ok(json!([text("[a://b]\n"), png])));
    }

    #[test]
    fn broken_medium_is_a_note_and_the_others_stay() {
        let broken = json!({"type": "image", "data": "a b", "mimeType": "image/png"});
        let image = json!({"type": "image", "data": "AAEC", "mimeType": "image/gif"});
        let shown = read(json!({"content": [broken, image]})).expect("a result");
        let note = shown[0]["text"].as_str().expect("a text");
        assert!(note.starts_with("[image: image/png, 2 bytes, not shown: its base64 is broken: "), "{note}");
        assert_eq!(shown[1], json!({"type": "image", "blob": "AAEC", "mime_type": "image/gif"}));
        let failed = read(json!({"content": [text("no:"), image], "isError": true})).expect_err("an error");
        assert_eq!(failed.to_string(), "no:\n[image: image/gif, 3 bytes, not shown]");
    }

    #[test]
    fn other_content_is_described() {
        let text = json!({"type": "resource", "resource": {"uri": "a://b", "text": "hello"}});
        assert_eq!(read(json!({"content": [text]})), Ok(json!("[a://b]\nhello")));
        let blob =
            json!({"type": "resource", "resource": {"uri": "a://b", "blob": "AAEC", "mimeType": "x/y"}});
        assert_eq!(read(json!({"content": [blob]})), Ok(json!("[a://b: x/y, 3 bytes, not shown]")));
        let link = Resource::new("file:///a", "a").with_size(9).with_description("A file.");
        let link = parts(&ContentBlock::resource_link(link));
        assert_eq!(link, [Part::Text("[link to file:///a (a, 9 bytes: A file.)]".to_owned())]);
    }

    #[test]
    fn tool_error_keeps_its_text() {
        let failed = |json| read(json).expect_err("an error").to_string();
        let text = json!({"type": "text", "text": "no such city"});
        assert_eq!(failed(json!({"content": [text], "isError": true})), "no such city");
        assert_eq!(failed(json!({"content": [], "isError": true})), "the tool failed without a message");
        let structured = json!({"content": [], "structuredContent": {"code": 4}, "isError": true});
        assert_eq!(failed(structured), "{\"code\":4}");
    }
}
