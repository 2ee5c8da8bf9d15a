//! Messages of a chat in the form of kept conversations, which is that of the page, and back.

use lm_api::media_parts;
use lm_documents::Document;
use lm_store::{Message as KeptMessage, Role as KeptRole};
use lm_template::{Content, Map, Media, MediaSource, Message, Part, Role, ToolCall, Value};
use serde_json::json;

use crate::file_url;

/// Message for the store, after the one of this id. `None` for a role that is not kept: the system prompt
/// belongs to the settings.
pub fn to_kept(message: &Message, parent: Option<&str>, model: &str) -> Option<KeptMessage> {
    let (role, fields) = match message.role {
        Role::User => (KeptRole::User, Map::new()),
        Role::Assistant => (KeptRole::Assistant, reply_fields(message, model)),
        Role::Tool => (KeptRole::Tool, result_fields(message)),
        _ => return None,
    };
    let mut kept = KeptMessage::new(None, role, message.content.text());
    kept.parent = parent.map(str::to_owned);
    kept.fields = fields;
    if role == KeptRole::User {
        let media =
            message.content.parts().iter().filter(|part| matches!(part, Part::Image(_) | Part::Audio(_)));
        let urls: Vec<Option<String>> = media.map(data_url).collect();
        kept.dropped = urls.iter().filter(|url| url.is_none()).count();
        kept.media = urls.into_iter().flatten().collect();
    }
    Some(kept)
}

fn reply_fields(message: &Message, model: &str) -> Map<String, Value> {
    let call = |(index, call): (usize, &ToolCall)| {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{index}"));
        let arguments =
            call.arguments_text().map_or_else(|| json!(call.arguments).to_string(), str::to_owned);
        json!({"id": id, "name": call.name, "arguments": arguments})
    };
    let calls: Vec<Value> = message.tool_calls.iter().enumerate().map(call).collect();
    let reasoning = message.reasoning_content.as_deref().unwrap_or_default();
    object(json!({"reasoning": reasoning, "calls": calls, "state": "done", "model": model}))
}

fn result_fields(message: &Message) -> Map<String, Value> {
    let call = message.tool_call_id.as_deref().unwrap_or("call_0");
    let name = message.name.as_deref().unwrap_or_default();
    let mut fields = object(json!({"call": call, "name": name, "outcome": "ok"}));
    if matches!(message.content, Content::Json(_)) {
        fields.insert("json".to_owned(), true.into());
    }
    if let Some(parts) = media_parts(&message.content) {
        fields.insert("parts".to_owned(), parts.into());
    }
    fields
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Data URL of an image or an audio clip; `None` for one in a file.
fn data_url(part: &Part) -> Option<String> {
    let (media, unknown) = match part {
        Part::Image(media) => (media, "image/png"),
        Part::Audio(media) => (media, "audio/wav"),
        _ => return None,
    };
    let MediaSource::Blob(_) = media.source else { return None };
    Some(format!("data:{};base64,{}", media.mime_type().unwrap_or(unknown), media.to_base64()?))
}

/// Message of a chat for a kept one.
pub fn of_kept(kept: &KeptMessage) -> Message {
    let text = |key: &str| kept.fields.get(key).and_then(Value::as_str).unwrap_or_default();
    match kept.role {
        KeptRole::User => Message::user(user_content(kept)),
        KeptRole::Assistant => {
            let mut message = Message::assistant(kept.content.as_str());
            message.tool_calls = calls(kept);
            if !message.tool_calls.is_empty() && kept.content.is_empty() {
                message.content = Content::None;
            }
            message.reasoning_content = Some(text("reasoning").to_owned()).filter(|text| !text.is_empty());
            message
        }
        KeptRole::Tool => {
            let is_json = kept.fields.get("json") == Some(&Value::Bool(true));
            let json = is_json.then(|| serde_json::from_str(&kept.content).ok()).flatten();
            let result = json.unwrap_or_else(|| Value::from(kept.content.as_str()));
            let mut message = Message::tool(Some(text("call")), text("name"), result);
            if let Some(parts) = result_parts(kept) {
                message.content = Content::Parts(parts);
            }
            message
        }
    }
}

fn user_content(kept: &KeptMessage) -> Content {
    let note = (kept.dropped > 0)
        .then(|| Part::Text(format!("[{} images or audio clips, not kept]\n", kept.dropped)));
    let further = kept_excerpts(kept).filter(|(file, _)| file.is_none()).map(|(_, prompt)| text_part(prompt));
    let own = |index: usize| kept_excerpts(kept).find(|(file, _)| *file == Some(index));
    let media = kept.media.iter().enumerate().filter_map(|(index, url)| match own(index) {
        Some((_, prompt)) => Some(text_part(prompt)),
        None => medium(url),
    });
    let mut parts: Vec<Part> = further.chain(media).chain(note).collect();
    if parts.is_empty() {
        return kept.content.as_str().into();
    }
    parts.push(Part::Text(kept.content.clone()));
    Content::Parts(parts)
}

/// Passages of files that the page has sent: the index of the medium that they stand for, or `None` for those
/// of a file of an earlier message, and the part of the prompt.
fn kept_excerpts(kept: &KeptMessage) -> impl Iterator<Item = (Option<usize>, &str)> {
    let excerpts = kept.fields.get("excerpts").and_then(Value::as_array).into_iter().flatten();
    excerpts.filter_map(|excerpt| {
        let file = excerpt["file"].as_u64().and_then(|index| index.try_into().ok());
        Some((file, excerpt["prompt"].as_str()?))
    })
}

fn text_part(prompt: &str) -> Part {
    Part::Text(format!("{prompt}\n\n"))
}

/// Image, audio or text file of a data URL; the file is a text, as the page sends it.
fn medium(url: &str) -> Option<Part> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let media = Media::from_base64(data).ok()?;
    if let Some(name) = kind.strip_prefix("text/plain;name=") {
        let MediaSource::Blob(bytes) = &media.source else { return None };
        let prompt = Document::read(bytes).ok()?.prompt(&file_url::percent_decoded(name));
        return Some(Part::Text(prompt + "\n\n"));
    }
    if kind.starts_with("image/") { Some(Part::Image(media)) } else { Some(Part::Audio(media)) }
}

fn calls(kept: &KeptMessage) -> Vec<ToolCall> {
    let call = |call: &Value| {
        let text = |key: &str| call.get(key).and_then(Value::as_str);
        Some(ToolCall::with_arguments_text(text("name")?, text("arguments")?).with_id(text("id")?))
    };
    kept.fields.get("calls").and_then(Value::as_array).into_iter().flatten().filter_map(call).collect()
}

/// Parts of a result with images or audio, in the form of chat completions.
fn result_parts(kept: &KeptMessage) -> Option<Vec<Part>> {
    let part = |part: &Value| match part["type"].as_str()? {
        "text" => Some(Part::Text(part["text"].as_str()?.to_owned())),
        "image_url" => medium(part["image_url"]["url"].as_str()?),
        "input_audio" => Media::from_base64(part["input_audio"]["data"].as_str()?).ok().map(Part::Audio),
        _ => None,
    };
    let parts = kept.fields.get("parts")?.as_array()?;
    Some(parts.iter().filter_map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let image = Media::from_bytes(b"\x89PNG\r\n".to_vec());
        let user =
            Message::user(Content::Parts(vec![Part::Image(image.clone()), Part::Text("What?".to_owned())]));
        let mut reply = Message::assistant("Let me look.");
        reply.reasoning_content = Some("Hm.".to_owned());
        let arguments = object(json!({"location": "Paris", "n": 1.50}));
        reply.tool_calls = vec![ToolCall::new("get_weather", arguments).with_id("c7")];
        let result = Message::tool(Some("c7"), "get_weather", json!({"temperature": 1.0, "list": [1, null]}));
        let text = Message::tool(Some("c8"), "read", json!("plain text"));
        let mut shown = Message::tool(Some("c9"), "draw", json!(null));
        shown.content = Content::Parts(vec![Part::Text("Here:".to_owned()), Part::Image(image)]);
        for message in [user, reply, result, text, shown, Message::user(""), Message::assistant("Fine.")] {
            let kept = to_kept(&message, Some("m1"), "pocket").expect("is kept");
            assert_eq!(kept.parent.as_deref(), Some("m1"));
            let json = json!({"id": "c", "nodes": {"m1": {"id": "m1", "role": "user", "content": ""}, kept.id.clone(): kept.to_json()}});
            let read = lm_store::Conversation::from_json(json).expect("is valid");
            assert_eq!(of_kept(&read.messages[1]), message);
        }
        assert!(to_kept(&Message::system("x"), None, "pocket").is_none());
    }

    #[test]
    fn text_file_of_the_page_is_text() {
        let mut kept = KeptMessage::new(None, KeptRole::User, "What is it?".to_owned());
        kept.media = vec!["data:text/plain;name=a%20%C3%A4.txt;base64,SGVsbG8=".to_owned()];
        let message = of_kept(&kept);
        assert_eq!(message.content.text(), "File \"a ä.txt\":\n```\nHello\n```\n\nWhat is it?");
        let excerpts = json!([{"file": {"message": "m0", "file": 0}, "prompt": "further"}, {"file": 0, "prompt": "own"}]);
        kept.fields.insert("excerpts".to_owned(), excerpts);
        assert_eq!(of_kept(&kept).content.text(), "further\n\nown\n\nWhat is it?");
    }
}
