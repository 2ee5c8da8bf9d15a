//! Origin of template variables (template or content), and rendered text in segments.

use lm_jinja::{Origin, Rendering, VariableText};
use serde_json::{Map, Value};

use crate::prompt::Prompt;

/// Variables whose texts are content.
const CONTENT_VARIABLES: [&str; 5] = ["documents", "message", "messages", "tools", "xml_tools"];

/// Returns the origin of a variable's text; texts of variables in `given` are content under any name.
pub(crate) fn origin(text: VariableText<'_>, given: &Map<String, Value>) -> Origin {
    let is_content = given.contains_key(text.variable) || CONTENT_VARIABLES.contains(&text.variable);
    // Templates build markers from these two keys (`<|` + role + `|>`); a plain word cannot form a special
    // token by itself.
    let is_marker_word = matches!(text.key, Some("role" | "type")) && is_word(text.text);
    if is_content && !is_marker_word { Origin::Content } else { Origin::Template }
}

/// Returns true if the text cannot contain a special token, as names of roles and part types.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// Converts a rendering to segments.
pub(crate) fn prompt(rendering: &Rendering) -> Prompt {
    let mut prompt = Prompt::default();
    for (origin, text) in rendering.segments() {
        prompt.push(origin, text);
    }
    prompt.generation = rendering.generation().to_vec();
    prompt
}
