//! Content of items with the parts that chat completions have.

use serde_json::{Value, json};

/// Content with the types of parts that chat completions have.
pub(super) fn content(content: &Value) -> Value {
    match content {
        Value::Array(parts) => parts.iter().map(part).collect(),
        screenshot if screenshot["type"] == "computer_screenshot" => screen(screenshot),
        content => content.clone(),
    }
}

fn part(part: &Value) -> Value {
    let mut part = part.clone();
    let kind = match part["type"].as_str() {
        Some("input_text" | "output_text" | "summary_text") => "text",
        Some("input_image") => "image_url",
        Some("input_file") => "file",
        _ => return part,
    };
    part["type"] = kind.into();
    part
}

/// A picture of the screen; one of a file on OpenAI's servers is told as it is.
fn screen(screenshot: &Value) -> Value {
    let is_here = screenshot["image_url"].as_str().is_some_and(|url| url.starts_with("data:"));
    match is_here {
        true => json!([{"type": "image_url", "image_url": screenshot["image_url"]}]),
        false => screenshot.clone(),
    }
}

/// Text of a reasoning item: its content, or else its summary.
pub(super) fn reasoning(item: &Value) -> String {
    let texts = |key: &str| {
        let parts = item[key].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect::<String>()
    };
    let text = texts("content");
    if text.is_empty() { texts("summary") } else { text }
}
