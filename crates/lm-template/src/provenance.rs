//! Origin of template variables and of rendered text (template or content).

use std::ops::Range;

use serde_json::{Map, Value};

use crate::jinja::{self, Dict, Limits, Text, Value as TemplateValue};
use crate::prompt::{Prompt, SegmentKind};

/// Variables whose texts are content.
const CONTENT_VARIABLES: [&str; 5] = ["documents", "message", "messages", "tools", "xml_tools"];

/// Converts the variables of a rendering for the template; those in `given` are content, whatever their names.
pub(crate) fn variables(
    context: &Map<String, Value>,
    given: &Map<String, Value>,
    limits: &Limits,
) -> jinja::Result<Vec<(String, TemplateValue)>> {
    let variable = |(name, value): (&String, &Value)| {
        let kind = match given.contains_key(name) || CONTENT_VARIABLES.contains(&name.as_str()) {
            true => SegmentKind::Content,
            false => SegmentKind::Template,
        };
        Ok((name.clone(), convert(value, kind, limits, 0)?))
    };
    context.iter().map(variable).collect()
}

fn convert(value: &Value, kind: SegmentKind, limits: &Limits, depth: usize) -> jinja::Result<TemplateValue> {
    jinja::check_depth(depth)?;
    Ok(match value {
        Value::Null => TemplateValue::None,
        Value::Bool(value) => TemplateValue::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => TemplateValue::Int(number.into()),
            (_, Some(number)) => TemplateValue::Int(number.into()),
            _ => TemplateValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => TemplateValue::Text(Text::new(text.as_str(), kind)),
        Value::Array(items) => {
            let items = items.iter().map(|item| convert(item, kind, limits, depth + 1));
            TemplateValue::list(items.collect::<jinja::Result<_>>()?, limits)?
        }
        Value::Object(object) => {
            let mut dict = Dict::default();
            for (name, value) in object {
                // Templates build markers from these two keys (`<|` + role + `|>`); a plain word cannot form a special
                // token by itself.
                let is_word =
                    matches!((name.as_str(), value), ("role" | "type", Value::String(word)) if is_word(word));
                let inner = if is_word { SegmentKind::Template } else { kind };
                let key = TemplateValue::Text(Text::new(name.as_str(), kind));
                dict.insert(key, convert(value, inner, limits, depth + 1)?, limits)?;
            }
            TemplateValue::Dict(dict.into())
        }
    })
}

/// Returns true if the text cannot contain a special token, as names of roles and part types.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// Converts a rendering to segments.
pub(crate) fn prompt(text: &Text, generation: Vec<Range<usize>>) -> Prompt {
    let mut prompt = Prompt::default();
    for (kind, piece) in text.all_pieces() {
        prompt.push(kind, piece);
    }
    // A range inside a macro has offsets of the output at that time, which may not be character boundaries.
    let is_place = |at: usize| text.as_str().is_char_boundary(at);
    prompt.generation =
        generation.into_iter().filter(|range| is_place(range.start) && is_place(range.end)).collect();
    prompt
}
