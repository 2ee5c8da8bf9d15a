//! Results of MCP tools as tool results of this crate.

use lm_tools::{ToolError, Value};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Converts the result of a call: the structured content if there is any, otherwise the text. Content that a
/// tool message has no place for is described in brackets. An error of the tool is an error with its text.
pub(super) fn result(result: CallToolResult) -> Result<Value, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let text = joined(content.iter().map(described));
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
        return Ok(Value::String(joined(content.iter().map(described))));
    };
    // Its texts repeat the structured content.
    let others: Vec<_> = content.iter().filter(|block| block.as_text().is_none()).map(described).collect();
    if others.is_empty() {
        return Ok(structured);
    }
    Ok(Value::String(joined(std::iter::once(structured.to_string()).chain(others))))
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

/// The text of a block, or a description of it.
fn described(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => media("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => media("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => embedded(&resource.resource),
        ContentBlock::ResourceLink(link) => {
            let title = link.title.as_ref().unwrap_or(&link.name);
            let kind = link.mime_type.iter().map(|kind| format!(", {kind}"));
            let size = link.size.iter().map(|size| format!(", {size} bytes"));
            let about = link.description.iter().map(|about| format!(": {about}"));
            format!("[link to {} ({title}{})]", link.uri, kind.chain(size).chain(about).collect::<String>())
        }
        other => format!("[content of an unknown kind: {}]", kind(other)),
    }
}

fn embedded(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or("unknown type");
            format!("[{uri}: {kind}, {} bytes, not shown]", decoded_len(blob))
        }
        other => format!("[content of an unknown kind: {}]", kind(other)),
    }
}

fn media(what: &str, mime_type: &str, data: &str) -> String {
    format!("[{what}: {mime_type}, {} bytes, not shown]", decoded_len(data))
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
    fn non_text_content_is_described() {
        let image = json!({"type": "image", "data": "AAECAw==", "mimeType": "image/png"});
        assert_eq!(read(json!({"content": [image]})), Ok(json!("[image: image/png, 4 bytes, not shown]")));
        let result = read(json!({"content": [image], "structuredContent": {"n": 1}}));
        assert_eq!(result, Ok(json!("{\"n\":1}\n[image: image/png, 4 bytes, not shown]")));
        let text = json!({"type": "resource", "resource": {"uri": "a://b", "text": "hello"}});
        assert_eq!(read(json!({"content": [text]})), Ok(json!("[a://b]\nhello")));
        let blob =
            json!({"type": "resource", "resource": {"uri": "a://b", "blob": "AAEC", "mimeType": "x/y"}});
        assert_eq!(read(json!({"content": [blob]})), Ok(json!("[a://b: x/y, 3 bytes, not shown]")));
        let link = Resource::new("file:///a", "a").with_size(9).with_description("A file.");
        let link = ContentBlock::resource_link(link);
        assert_eq!(described(&link), "[link to file:///a (a, 9 bytes: A file.)]");
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
