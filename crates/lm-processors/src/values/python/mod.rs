//! Incremental conversion of Python literals and keyword arguments to JSON text.

mod json_text;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::json_text::{JsonText, Kind, Step};
use super::number::number_text;
use super::python_string::{PythonString, Taken};
use crate::declared_names::{Declared, declared};

/// Parser of a Python call's arguments, from after its opening bracket to its closing one.
///
/// Lists, tuples and sets become arrays. Constants have their Python or JSON names. Positional arguments take
/// the names of the declared properties in order; without declarations they are refused.
#[derive(Debug)]
pub(crate) struct PythonArguments {
    json: JsonText,
    state: State,
    /// Declared keywords, which may contain any characters.
    keywords: Vec<String>,
    /// Number of bytes read.
    at: usize,
}

#[derive(Debug, Clone)]
enum State {
    /// Before a value or a closing bracket.
    Value,
    /// Inside a number, a constant, a keyword or a string's prefix; `ended` by whitespace.
    Word {
        word: String,
        ended: bool,
    },
    String(PythonString),
    /// After a value.
    After,
}

impl PythonArguments {
    /// Creates a parser for a tool with these names of positional arguments and these keywords.
    pub(crate) fn new(positional_names: Vec<String>, keywords: Vec<String>) -> Self {
        Self { json: JsonText::new(Kind::Arguments, positional_names), state: State::Value, keywords, at: 0 }
    }

    /// Creates a parser for the rest of a literal after its opening bracket, `[` or `{`.
    pub(crate) fn literal(bracket: char) -> Self {
        let kind = if bracket == '[' { Kind::List } else { Kind::Curly };
        Self { json: JsonText::new(kind, Vec::new()), state: State::Value, keywords: Vec::new(), at: 0 }
    }

    /// The JSON text that is certain and can no longer change.
    pub(crate) fn certain(&self) -> &str {
        self.json.certain()
    }

    /// Continues in `text`, which starts with the text of the previous calls; returns the end of the
    /// arguments, once reached.
    ///
    /// # Errors
    /// Description of the fault.
    pub(crate) fn follow(&mut self, text: &str) -> Result<Option<usize>, String> {
        while let Some(c) = text[self.at..].chars().next() {
            match self.declared_keyword(&text[self.at..]) {
                Declared::Found(name) => {
                    let name = name.to_owned();
                    self.json.keyword(&name)?;
                    self.at += name.len() + 1;
                }
                Declared::Open => return Ok(None),
                Declared::Absent => {
                    self.push(c)?;
                    self.at += c.len_utf8();
                }
            }
            if self.json.is_closed() {
                return Ok(Some(self.at));
            }
        }
        Ok(None)
    }

    /// Matches a declared keyword at the start of `text`, in positions that allow one.
    fn declared_keyword(&self, text: &str) -> Declared<'_> {
        if matches!(self.state, State::Value) && self.json.expects_keyword() {
            declared(text, self.keywords.iter().map(String::as_str), &["="])
        } else {
            Declared::Absent
        }
    }

    fn push(&mut self, c: char) -> Step {
        match &mut self.state {
            State::Value => self.value(c),
            State::Word { word, ended } => {
                if !*ended && is_word(c) {
                    word.push(c);
                    return Ok(());
                }
                *ended = true;
                if c.is_whitespace() {
                    return Ok(());
                }
                let word = std::mem::take(word);
                self.word(&word, c)
            }
            State::String(string) => {
                let taken = string.push(c, self.json.string());
                if taken == Taken::Inside {
                    return Ok(());
                }
                self.json.string().push('"');
                self.state = State::After;
                if taken == Taken::Before { self.push(c) } else { Ok(()) }
            }
            State::After => self.after(c),
        }
    }

    fn value(&mut self, c: char) -> Step {
        match c {
            c if c.is_whitespace() => Ok(()),
            '"' | '\'' => self.string(c, false),
            '[' => self.json.open(Kind::List),
            '(' => self.json.open(Kind::Round { comma: false }),
            '{' => self.json.open(Kind::Curly),
            ')' | ']' | '}' => self.close(c),
            c if is_word(c) || c == '+' => {
                self.state = State::Word { word: c.to_string(), ended: false };
                Ok(())
            }
            c => Err(format!("a value cannot begin with `{c}`")),
        }
    }

    /// Handles a word that is complete before `c`.
    fn word(&mut self, word: &str, c: char) -> Step {
        if c == '=' && self.json.expects_keyword() {
            self.state = State::Value;
            return self.json.keyword(word);
        }
        // The sign of an exponent continues the number.
        if matches!(c, '+' | '-')
            && word.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
            && word.ends_with(['e', 'E'])
        {
            self.state = State::Word { word: format!("{word}{c}"), ended: false };
            return Ok(());
        }
        if matches!(c, '"' | '\'') && is_string_prefix(word) {
            return self.string(c, word.contains(['r', 'R']));
        }
        self.json.value(&constant_or_number(word)?)?;
        self.state = State::After;
        self.push(c)
    }

    fn string(&mut self, quote: char, raw: bool) -> Step {
        self.json.value("\"")?;
        self.state = State::String(PythonString::new(quote, raw));
        Ok(())
    }

    fn after(&mut self, c: char) -> Step {
        match c {
            c if c.is_whitespace() => return Ok(()),
            ',' => self.json.comma()?,
            ':' => self.json.colon()?,
            ')' | ']' | '}' => {
                self.json.element_ends()?;
                return self.close(c);
            }
            c => return Err(format!("unexpected `{c}` after a value")),
        }
        self.state = State::Value;
        Ok(())
    }

    fn close(&mut self, c: char) -> Step {
        self.state = State::After;
        self.json.close(c)
    }
}

/// JSON text of a constant or number of Python.
fn constant_or_number(word: &str) -> Result<String, String> {
    match word {
        "True" | "true" => Ok("true".to_owned()),
        "False" | "false" => Ok("false".to_owned()),
        "None" | "null" => Ok("null".to_owned()),
        word => number_text(word).ok_or_else(|| format!("`{word}` is no value")),
    }
}

/// Characters of numbers, constants and names; names may contain dots and dashes, as those of tools do.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '$')
}

fn is_string_prefix(word: &str) -> bool {
    word.len() <= 2 && word.chars().all(|c| "rRbBuUfF".contains(c))
}

/// Parses a text as a Python literal.
pub(crate) fn python_literal(text: &str) -> Option<Value> {
    let mut list = PythonArguments::literal('[');
    let open = list.follow(text) == Ok(None);
    list.at = 0;
    if !open || list.follow("]") != Ok(Some(1)) {
        return None;
    }
    let values: [Value; 1] = serde_json::from_str::<Vec<Value>>(list.json.as_str()).ok()?.try_into().ok()?;
    let [value] = values;
    Some(value)
}
