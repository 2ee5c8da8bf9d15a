//! Constants: the values of `const` and `enum`.

use lm_template::Value;

use super::{Strings, Values};
use crate::grammar::lark::{literal, sequence};

impl Values<'_> {
    /// Builds one of these values; `None` if none may occur here.
    pub(super) fn constants(&mut self, values: &[Value]) -> Option<String> {
        let mut options = Vec::new();
        for value in values {
            if !self.holds_excluded(&self.spelling.write(value)) && !self.holds_fence(value) {
                options.push(self.constant(value));
            }
        }
        (!options.is_empty()).then(|| self.lark.alternatives(options))
    }

    /// Returns true if a text of `value` contains the fence around verbatim texts, which would end it.
    fn holds_fence(&self, value: &Value) -> bool {
        let Strings::Fenced(fence) = self.spelling.strings else { return false };
        let breaks = |text: &str| self.lark.spelled([fence]).any(|fence| text.contains(&*fence));
        match value {
            Value::String(text) => breaks(text),
            Value::Array(items) => items.iter().any(|item| self.holds_fence(item)),
            Value::Object(members) => {
                members.iter().any(|(key, value)| breaks(key) || self.holds_fence(value))
            }
            _ => false,
        }
    }

    /// Builds a single value, in the lexemes of other lists and objects: with a longer lexeme, the lexer would read
    /// texts with a common prefix as this value only.
    pub(in crate::grammar) fn constant(&mut self, value: &Value) -> String {
        match (value, self.spelling.strings) {
            (Value::String(text), Strings::Fenced(fence)) => {
                let open = self.lark.marker(fence);
                // With the fence in the lexeme, no text is the beginning of another.
                let rest = self.lark.up_to(&sequence([&*literal(text)]), "", fence);
                format!("{open} {rest}")
            }
            (Value::Array(items), _) => {
                let items: Vec<String> = items.iter().map(|item| self.constant(item)).collect();
                self.enclosed_list("[", &items, "]")
            }
            (Value::Object(members), _) => {
                let member = |(key, value): (&String, &Value)| {
                    sequence([&*self.key(key), &self.mark(self.spelling.colon), &self.constant(value)])
                };
                let members: Vec<String> = members.iter().map(member).collect();
                self.enclosed_list("{", &members, "}")
            }
            _ => literal(&self.spelling.write(value)),
        }
    }

    fn enclosed_list(&self, open: &str, items: &[String], close: &str) -> String {
        let comma = format!(" {} ", self.mark(self.spelling.comma));
        sequence([&*self.mark(open), &items.join(&comma), &self.mark(close)])
    }
}
