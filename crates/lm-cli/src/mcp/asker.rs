//! Questions of MCP servers to the user of a chat, on the terminal.

use std::sync::{Arc, Mutex, PoisonError};

use lm_mcp::{Elicitation, ElicitationAnswer, ElicitationMode};
use lm_tools::{Map, Value};

use crate::interrupt::Interrupt;
use crate::lines::{Line, Lines};
use crate::screen::one_line;

/// The user, who answers the questions of servers.
#[derive(Clone)]
pub struct Asker {
    lines: Arc<Mutex<Lines>>,
    interrupt: Interrupt,
}

/// Answer other than a value: the question ends.
struct Ended(ElicitationAnswer);

impl Asker {
    pub fn new(lines: Arc<Mutex<Lines>>, interrupt: Interrupt) -> Self {
        Self { lines, interrupt }
    }

    /// Asks the user. Without a terminal the question is declined; Ctrl-C cancels the turn as well.
    pub fn answer(&self, question: &Elicitation) -> ElicitationAnswer {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_ended(question) {
            return ElicitationAnswer::Cancel;
        }
        let server = one_line(&question.server);
        if !lines.is_terminal() {
            eprintln!("note: MCP server \"{server}\" asks a question: without a terminal it is declined");
            return ElicitationAnswer::Decline;
        }
        eprintln!("\nserver \"{server}\" asks: {}", one_line(&question.message));
        let answered = match &question.mode {
            ElicitationMode::Form { schema } => {
                eprintln!(
                    "(do not give it passwords; an empty line leaves a value out, Ctrl-D says no, Ctrl-C cancels the turn)"
                );
                self.form(question, schema, &mut lines)
            }
            ElicitationMode::Url { url } => self.page(question, url, &mut lines),
        };
        answered.map_or_else(|Ended(answer)| answer, ElicitationAnswer::Accept)
    }

    /// Returns true if nobody waits for the answer: the call has ended, or the turn was cancelled.
    fn has_ended(&self, question: &Elicitation) -> bool {
        !question.is_open() || self.interrupt.is_cancelled()
    }

    /// Asks for the values of a form, one by one.
    fn form(
        &self,
        question: &Elicitation,
        schema: &Value,
        lines: &mut Lines,
    ) -> Result<Map<String, Value>, Ended> {
        let mut values = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let required =
                schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
            let field = Field { name, property, required };
            if let Some(about) = field.property["description"].as_str() {
                eprintln!("{}", one_line(about));
            }
            loop {
                match field.value(self.line(question, &field.prompt(), lines)?.trim()) {
                    Ok(Some(value)) => drop(values.insert(name.clone(), value)),
                    Ok(None) => {}
                    Err(expected) => {
                        eprintln!("expected {}", one_line(&expected));
                        continue;
                    }
                }
                break;
            }
        }
        Ok(values)
    }

    /// Asks whether the user opens a page.
    fn page(
        &self,
        question: &Elicitation,
        url: &str,
        lines: &mut Lines,
    ) -> Result<Map<String, Value>, Ended> {
        eprintln!("It wants you to open {} in a browser.", one_line(url));
        loop {
            match self.line(question, "Do you open it? [yes/no] ", lines)?.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Map::new()),
                "n" | "no" => return Err(Ended(ElicitationAnswer::Decline)),
                _ => {}
            }
        }
    }

    /// Reads a line. One that comes after the end of the call is the user's next message.
    fn line(&self, question: &Elicitation, prompt: &str, lines: &mut Lines) -> Result<String, Ended> {
        match lines.line(prompt) {
            Ok(Line::Text(text)) if self.has_ended(question) => {
                eprintln!("note: the question has ended; the line is a message of the chat");
                lines.give_back(text);
                Err(Ended(ElicitationAnswer::Cancel))
            }
            Ok(Line::Text(text)) => Ok(text),
            Ok(Line::Interrupted | Line::Cleared) => {
                self.interrupt.cancel();
                Err(Ended(ElicitationAnswer::Cancel))
            }
            Ok(Line::End) | Err(_) => Err(Ended(ElicitationAnswer::Decline)),
        }
    }
}

/// A value of a form.
struct Field<'a> {
    name: &'a str,
    property: &'a Value,
    required: bool,
}

impl Field<'_> {
    /// Name, kind and default of the value.
    fn prompt(&self) -> String {
        let title = self.property["title"].as_str().unwrap_or(self.name);
        let choices = choices(self.property).or_else(|| choices(&self.property["items"]));
        let kind = match choices {
            Some(choices) => choices.join("/"),
            None => self.property["type"].as_str().unwrap_or("text").to_owned(),
        };
        let kind = if kind == "boolean" { "yes/no".to_owned() } else { kind };
        let kind = bounds(self.property).into_iter().fold(kind, |kind, bound| kind + ", " + &bound.text());
        let default = self.property.get("default").map(|value| format!("; {}", text(value)));
        let optional = if self.required || default.is_some() { "" } else { "; optional" };
        one_line(&format!("{title} [{kind}{}{optional}] ", default.unwrap_or_default()))
    }

    /// Reads the value; `None` if it is left out.
    ///
    /// # Errors
    /// The description of what is possible.
    fn value(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match self.property.get("default") {
                None if self.required => Err("a value".to_owned()),
                default => Ok(default.cloned()),
            };
        }
        let chosen = |word: &str, property: &Value| match choices(property) {
            Some(choices) if !choices.iter().any(|choice| choice == word) => {
                Err(format!("one of {}", choices.join(", ")))
            }
            _ => Ok(Value::from(word)),
        };
        let value = match self.property["type"].as_str() {
            Some("integer") => line.parse::<i64>().map(Value::from).map_err(|_| "an integer".to_owned()),
            Some("number") => match line.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number.into()),
                _ => Err("a number".to_owned()),
            },
            Some("boolean") => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("yes or no".to_owned()),
            },
            Some("array") => {
                line.split(',').map(|word| chosen(word.trim(), &self.property["items"])).collect()
            }
            _ => chosen(line, self.property),
        }?;
        match out_of_bounds(self.property, &value) {
            Some(expected) => Err(expected),
            None => Ok(Some(value)),
        }
    }
}

/// A bound of a property: its keyword in the schema, and the value.
struct Bound<'a> {
    keyword: &'static str,
    bound: &'a Value,
}

/// Keywords of bounds, with their descriptions.
const BOUNDS: [(&str, &str); 6] = [
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("minItems", "values at least"),
    ("maxItems", "values at most"),
];

impl Bound<'_> {
    fn text(&self) -> String {
        let about =
            BOUNDS.iter().find(|(keyword, _)| *keyword == self.keyword).map_or("", |(_, about)| about);
        match self.keyword {
            "minimum" | "maximum" => format!("{about} {}", self.bound),
            _ => format!("{} {about}", self.bound),
        }
    }

    /// Returns true if a value keeps it, or is of another type.
    fn holds(&self, value: &Value) -> bool {
        let size = match self.keyword {
            "minimum" | "maximum" => value.as_f64(),
            "minLength" | "maxLength" => value.as_str().map(|text| text.chars().count() as f64),
            _ => value.as_array().map(|values| values.len() as f64),
        };
        let (Some(size), Some(bound)) = (size, self.bound.as_f64()) else { return true };
        if self.keyword.starts_with("min") { size >= bound } else { size <= bound }
    }
}

/// The bounds of a property.
fn bounds(property: &Value) -> Vec<Bound<'_>> {
    let bound = |(keyword, _): (&'static str, &str)| {
        property.get(keyword).filter(|bound| bound.is_number()).map(|bound| Bound { keyword, bound })
    };
    BOUNDS.into_iter().filter_map(bound).collect()
}

/// Describes the first bound that a value does not keep.
fn out_of_bounds(property: &Value, value: &Value) -> Option<String> {
    bounds(property).iter().find(|bound| !bound.holds(value)).map(Bound::text)
}

/// The texts that a value is one of, if it is restricted.
fn choices(property: &Value) -> Option<Vec<String>> {
    if let Some(values) = property["enum"].as_array() {
        return Some(values.iter().map(text).collect());
    }
    let titled = property["oneOf"].as_array().or_else(|| property["anyOf"].as_array())?;
    Some(titled.iter().map(|choice| text(&choice["const"])).collect())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(property: Value, line: &str) -> Result<Option<Value>, String> {
        Field { name: "x", property: &property, required: true }.value(line)
    }

    #[test]
    fn values_have_the_types_of_the_form() {
        for (property, line, expected) in [
            (json!({"type": "string"}), "a b", json!("a b")),
            (json!({"type": "integer"}), "7", json!(7)),
            (json!({"type": "number"}), "0.5", json!(0.5)),
            (json!({"type": "boolean"}), "yes", json!(true)),
            (json!({"type": "string", "enum": ["a", "b"]}), "b", json!("b")),
            (json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), "a", json!("a")),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
                "a, b",
                json!(["a", "b"]),
            ),
            (json!({"type": "integer", "default": 3}), "", json!(3)),
        ] {
            assert_eq!(value(property, line), Ok(Some(expected)));
        }
    }

    #[test]
    fn other_values_say_what_is_expected() {
        for (property, line, expected) in [
            (json!({"type": "string"}), "", "a value"),
            (json!({"type": "integer"}), "7.5", "an integer"),
            (json!({"type": "number"}), "inf", "a number"),
            (json!({"type": "boolean"}), "perhaps", "yes or no"),
            (json!({"type": "string", "enum": ["a", "b"]}), "c", "one of a, b"),
            (json!({"type": "integer", "minimum": 1, "maximum": 4}), "9", "at most 4"),
            (json!({"type": "integer", "minimum": 1, "maximum": 4}), "0", "at least 1"),
            (json!({"type": "number", "maximum": 0.5}), "0.75", "at most 0.5"),
            (json!({"type": "string", "minLength": 3}), "éé", "3 characters at least"),
            (json!({"type": "string", "maxLength": 3}), "abcd", "3 characters at most"),
            (json!({"type": "array", "items": {"type": "string"}, "minItems": 2}), "a", "2 values at least"),
            (
                json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
                "a, b",
                "1 values at most",
            ),
        ] {
            assert_eq!(value(property, line), Err(expected.to_owned()));
        }
        let bounded = json!({"type": "integer", "minimum": 1, "maximum": 4});
        assert_eq!(value(bounded.clone(), "4"), Ok(Some(json!(4))));
        let seats = Field { name: "seats", property: &bounded, required: true };
        assert_eq!(seats.prompt(), "seats [integer, at least 1, at most 4] ");
        let optional = Field { name: "x", property: &json!({"type": "string"}), required: false };
        assert_eq!(optional.value(""), Ok(None));
        assert_eq!(optional.prompt(), "x [string; optional] ");
        let choice = json!({"type": "string", "title": "Size", "enum": ["s", "l"], "default": "s"});
        assert_eq!(Field { name: "x", property: &choice, required: true }.prompt(), "Size [s/l; s] ");
    }
}
