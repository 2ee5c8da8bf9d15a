//! Items of type `compaction` of this server, whose content is a summary.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Beginning of the content of such an item; the summary in base64 follows.
const PREFIX: &str = "lm-summary-1:";
/// Beginning of the message that a summary is.
const HEAD: &str = "Summary of the conversation up to here:\n\n";

/// Content of the item of a summary.
pub(super) fn content(summary: &str) -> String {
    format!("{PREFIX}{}", STANDARD.encode(summary))
}

/// Message of an item: the assistant's; `None` for items of other servers.
pub(super) fn message(item: &Value) -> Option<Value> {
    let content = item["encrypted_content"].as_str()?.strip_prefix(PREFIX)?;
    let summary = String::from_utf8(STANDARD.decode(content).ok()?).ok()?;
    Some(json!({"role": "assistant", "content": format!("{HEAD}{summary}")}))
}
