//! Constants: the values of `const` and `enum`.

use lm_template::Value;

use super::spelling::holds;
use super::{Strings, Values};
use crate::grammar::lark::{literal, sequence};

impl Values<'_> {
    /// Builds one of the listed values of the schema at `path`; `None` if none can be written. Those that
    /// cannot are reported.
    pub(super) fn constants(&mut self, values: &[Value], path: &str) -> Option<String> {
        let mut options = Vec::new();
        for value in values {
            match self.is_writable(value) {
                true => options.push(self.constant(value)),
                false => self.leave_out(value, path),
            }
        }
        (!options.is_empty()).then(|| self.lark.alternatives(options))
    }

    /// Returns true if the written value contains no text that ends its context.
    pub(in crate::grammar) fn is_writable(&self, value: &Value) -> bool {
        !holds(&self.written(value), &self.excluded)
    }

    /// Writes a value without the excluded texts, as far as the syntax has escapes.
    pub(in crate::grammar) fn written(&self, value: &Value) -> String {
        self.spelling.write(value, &self.avoided())
    }

    /// Texts that strings do not contain: the excluded ones, and the fence around verbatim texts.
    pub(super) fn avoided(&self) -> Vec<String> {
        let fence = match self.spelling.strings {
            Strings::Fenced(fence) => Some(fence),
            Strings::Json | Strings::Python(_) => None,
        };
        self.lark.spelled(fence).chain(self.excluded.iter().cloned()).collect()
    }

    /// Records a listed value that the syntax cannot write.
    pub(in crate::grammar) fn leave_out(&mut self, value: &Value, path: &str) {
        self.unwritable.get_or_insert_with(|| (path.to_owned(), Some(value.clone())));
        self.leave_unenforced(path, "enum");
    }

    /// Builds a single value, in the lexemes of other lists and objects: with a longer lexeme, the lexer
    /// would read texts with a common prefix as this value only.
    pub(in crate::grammar) fn constant(&mut self, value: &Value) -> String {
        match (value, self.spelling.strings) {
            (Value::String(text), Strings::Fenced(fence)) if !holds(text, &self.avoided()) => {
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
            _ => literal(&self.written(value)),
        }
    }

    fn enclosed_list(&self, open: &str, items: &[String], close: &str) -> String {
        let comma = format!(" {} ", self.mark(self.spelling.comma));
        sequence([&*self.mark(open), &items.join(&comma), &self.mark(close)])
    }
}
