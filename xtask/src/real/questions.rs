//! Questions with a short answer of a known form.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

/// Questions of one kind.
#[derive(Deserialize)]
pub struct Group {
    #[serde(flatten)]
    pub format: Format,
    /// The question; `{}` stands for the text of an item.
    ask: String,
    /// Text and right answer.
    pub items: Vec<(String, Value)>,
}

/// Format of the answers.
#[derive(Deserialize)]
#[serde(tag = "format", rename_all = "lowercase")]
pub enum Format {
    Json { schema: Value },
    Choice { choices: Vec<String> },
    Regex { regex: String, gbnf: String },
}

/// Reads the questions.
pub fn read() -> Result<Vec<Group>> {
    Ok(serde_json::from_str(include_str!("questions.json"))?)
}

impl Group {
    /// Request of an item, without a format.
    pub fn request(&self, text: &str) -> Value {
        json!({"messages": [{"role": "user", "content": self.ask.replace("{}", text)}]})
    }
}

impl Format {
    /// Name in the table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Json { .. } => "JSON Schema",
            Self::Choice { .. } => "choice",
            Self::Regex { .. } => "regular expression",
        }
    }

    /// Adds the format to a request in the spelling of `lm serve`.
    pub fn constrain(&self, request: &mut Value) {
        match self {
            Self::Json { schema } => {
                request["response_format"] =
                    json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
            }
            Self::Choice { choices } => request["structured_outputs"] = json!({"choice": choices}),
            Self::Regex { regex, .. } => request["structured_outputs"] = json!({"regex": regex}),
        }
    }

    /// Adds the format to a request in the spelling of llama.cpp, which has a grammar in place of the two
    /// short formats.
    pub fn constrain_llama_cpp(&self, request: &mut Value) {
        match self {
            Self::Json { .. } => self.constrain(request),
            Self::Choice { choices } => {
                let choices: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
                request["grammar"] = format!("root ::= {}", choices.join(" | ")).into();
            }
            Self::Regex { gbnf, .. } => request["grammar"] = gbnf.as_str().into(),
        }
    }

    /// Returns true if a reply has the form.
    pub fn is_valid(&self, reply: &str) -> bool {
        match self {
            Self::Json { schema } => serde_json::from_str::<Value>(reply).is_ok_and(|value| {
                jsonschema::validator_for(schema).is_ok_and(|schema| schema.is_valid(&value))
            }),
            Self::Choice { choices } => choices.iter().any(|choice| choice == reply),
            Self::Regex { regex, .. } => {
                let schema = json!({"pattern": format!("^(?:{regex})$")});
                jsonschema::is_valid(&schema, &reply.into())
            }
        }
    }

    /// Returns true if a reply says the right answer: the members of its first JSON object, or its only
    /// choice, or the text.
    pub fn is_right(&self, reply: &str, right: &Value) -> bool {
        match self {
            Self::Json { .. } => first_object(reply).is_some_and(|value| is_same(&value, right)),
            Self::Choice { choices } => {
                let said = |choice: &&String| reply.to_lowercase().contains(&choice.to_lowercase());
                choices.iter().filter(said).eq(choices.iter().filter(|choice| **choice == *right))
            }
            Self::Regex { .. } => right.as_str().is_some_and(|right| reply.contains(right)),
        }
    }
}

/// First JSON object in a text.
fn first_object(text: &str) -> Option<Value> {
    let mut starts = text.match_indices('{');
    starts.find_map(|(at, _)| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok())
}

/// Compares values without regard to case, to white space around texts, and to further members.
fn is_same(value: &Value, right: &Value) -> bool {
    match (value, right) {
        (Value::String(value), Value::String(right)) => value.trim().to_lowercase() == right.to_lowercase(),
        (Value::Number(value), Value::Number(right)) => value.as_f64() == right.as_f64(),
        (Value::Array(values), Value::Array(rights)) => {
            values.len() == rights.len()
                && values.iter().zip(rights).all(|(value, right)| is_same(value, right))
        }
        (Value::Object(value), Value::Object(right)) => {
            right.iter().all(|(key, right)| value.get(key).is_some_and(|value| is_same(value, right)))
        }
        (value, right) => value == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_answers_are_valid_and_right() {
        for group in read().expect("questions") {
            for (text, right) in &group.items {
                let reply = right.as_str().map_or_else(|| right.to_string(), str::to_owned);
                assert!(group.format.is_valid(&reply) && group.format.is_right(&reply, right), "{text}");
                let fenced = format!("Sure:\n```\n{reply}\n```");
                assert!(!group.format.is_valid(&fenced) && group.format.is_right(&fenced, right), "{text}");
            }
        }
    }

    #[test]
    fn other_answers_are_wrong() {
        let choice = Format::Choice { choices: vec!["yes".to_owned(), "no".to_owned()] };
        assert!(!choice.is_right("Yes, or no.", &"yes".into()));
        assert!(!choice.is_right("maybe", &"yes".into()));
        let json = Format::Json { schema: json!({}) };
        for reply in ["{\"a\": [1]}", "{\"a\": [2, 1]}", "{}", "[1, 2]"] {
            assert!(!json.is_right(reply, &json!({"a": [1, 2]})), "{reply}");
        }
        assert!(json.is_right("{ {\"a\": [1.0, 2], \"b\": 0}", &json!({"a": [1, 2]})));
    }
}
