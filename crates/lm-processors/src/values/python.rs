//! Incremental conversion of Python literals and keyword arguments to JSON text.

use serde_json::Value;

use super::number::number_text;
use super::python_string::{PythonString, Taken};
use super::{MAX_DEPTH, push_json_string};
use crate::declared_names::{Declared, declared};

/// Parser of a Python call's arguments, from after its opening bracket to its closing one.
///
/// Lists, tuples and sets become arrays. Constants have their Python or JSON names. Positional arguments take the names
/// of the declared properties in order; without declarations they are refused.
#[derive(Debug)]
pub(crate) struct PythonArguments {
    out: String,
    stack: Vec<Frame>,
    state: State,
    positional_names: std::vec::IntoIter<String>,
    /// Declared keywords, which may contain any characters.
    keywords: Vec<String>,
    /// Number of bytes read.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Arguments of the call.
    Arguments,
    List,
    /// `(`: a tuple, or parentheses around one value, depending on a comma.
    Round {
        comma: bool,
    },
    /// `{`: a dictionary or a set, depending on a colon.
    Curly,
    Dict,
    Set,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Position of its bracket in the JSON text.
    start: usize,
    /// Start of the current element in the JSON text.
    element: usize,
    /// True if an element is complete.
    filled: bool,
    /// True if the key of the next value has been written.
    keyed: bool,
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

type Step = Result<(), String>;

impl PythonArguments {
    /// Creates a parser for a tool with these names of positional arguments and these keywords.
    pub(crate) fn new(positional_names: Vec<String>, keywords: Vec<String>) -> Self {
        let arguments = Self::within(Kind::Arguments, '{');
        Self { positional_names: positional_names.into_iter(), keywords, ..arguments }
    }

    /// Creates a parser for the rest of a literal after its opening bracket, `[` or `{`.
    pub(crate) fn literal(bracket: char) -> Self {
        Self::within(if bracket == '[' { Kind::List } else { Kind::Curly }, bracket)
    }

    fn within(kind: Kind, bracket: char) -> Self {
        let mut arguments = Self {
            out: String::new(),
            stack: Vec::new(),
            state: State::Value,
            positional_names: Vec::new().into_iter(),
            keywords: Vec::new(),
            at: 0,
        };
        arguments.push_frame(kind, bracket);
        arguments
    }

    /// The JSON text that is certain and can no longer change.
    pub(crate) fn certain(&self) -> &str {
        let open = |frame: &&Frame| matches!(frame.kind, Kind::Curly | Kind::Round { .. });
        &self.out[..self.stack.iter().find(open).map_or(self.out.len(), |frame| frame.start)]
    }

    /// Continues in `text`, which starts with the text of the previous calls; returns the end of the arguments, once
    /// reached.
    ///
    /// # Errors
    /// Description of the fault.
    pub(crate) fn follow(&mut self, text: &str) -> Result<Option<usize>, String> {
        while let Some(c) = text[self.at..].chars().next() {
            match self.declared_keyword(&text[self.at..]) {
                Declared::Found(name) => {
                    let name = name.to_owned();
                    self.keyword(&name)?;
                    self.at += name.len() + 1;
                }
                Declared::Open => return Ok(None),
                Declared::Absent => {
                    self.push(c)?;
                    self.at += c.len_utf8();
                }
            }
            if self.stack.is_empty() {
                return Ok(Some(self.at));
            }
        }
        Ok(None)
    }

    /// Matches a declared keyword at the start of `text`, in positions that allow one.
    fn declared_keyword(&self, text: &str) -> Declared<'_> {
        let outside = matches!(self.state, State::Value)
            && matches!(self.stack.last(), Some(Frame { kind: Kind::Arguments, keyed: false, .. }));
        if outside {
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
                let taken = string.push(c, &mut self.out);
                if taken == Taken::Inside {
                    return Ok(());
                }
                self.out.push('"');
                self.value_ends();
                if taken == Taken::Before { self.push(c) } else { Ok(()) }
            }
            State::After => self.after(c),
        }
    }

    /// The innermost open bracket; an error if the arguments have ended.
    fn top(&mut self) -> Result<&mut Frame, String> {
        self.stack.last_mut().ok_or_else(|| "text follows the arguments".to_owned())
    }

    fn value(&mut self, c: char) -> Step {
        match c {
            c if c.is_whitespace() => Ok(()),
            '"' | '\'' => self.string(c, false),
            '[' => self.open(Kind::List, '['),
            '(' => self.open(Kind::Round { comma: false }, '['),
            '{' => self.open(Kind::Curly, '{'),
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
        let frame = self.top()?;
        if c == '=' && frame.kind == Kind::Arguments && !frame.keyed {
            return self.keyword(word);
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
        let text = match word {
            "True" | "true" => "true".to_owned(),
            "False" | "false" => "false".to_owned(),
            "None" | "null" => "null".to_owned(),
            word => number_text(word).ok_or_else(|| format!("`{word}` is no value"))?,
        };
        self.begin_element()?;
        self.out.push_str(&text);
        self.value_ends();
        self.push(c)
    }

    fn keyword(&mut self, word: &str) -> Step {
        let frame = self.top()?;
        let separator = if frame.filled { ", " } else { "" };
        frame.keyed = true;
        self.out.push_str(separator);
        push_json_string(&mut self.out, word);
        self.out.push_str(": ");
        self.state = State::Value;
        Ok(())
    }

    fn string(&mut self, quote: char, raw: bool) -> Step {
        self.begin_element()?;
        self.out.push('"');
        self.state = State::String(PythonString::new(quote, raw));
        Ok(())
    }

    fn open(&mut self, kind: Kind, bracket: char) -> Step {
        if self.stack.len() == MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        self.begin_element()?;
        self.push_frame(kind, bracket);
        Ok(())
    }

    fn push_frame(&mut self, kind: Kind, bracket: char) {
        let start = self.out.len();
        self.out.push(bracket);
        self.stack.push(Frame { kind, start, element: start + 1, filled: false, keyed: false });
        self.state = State::Value;
    }

    /// Writes the text before an element: a comma, or the name of a positional argument.
    fn begin_element(&mut self) -> Step {
        let end = self.out.len();
        let frame = self.top()?;
        if frame.keyed {
            return Ok(());
        }
        if frame.kind == Kind::Arguments {
            let name = self.positional_names.next().ok_or("an argument has no name")?;
            return self.keyword(&name);
        }
        let comma = frame.filled;
        frame.element = end + if comma { 2 } else { 0 };
        if comma {
            self.out.push_str(", ");
        }
        Ok(())
    }

    fn value_ends(&mut self) {
        self.state = State::After;
    }

    fn after(&mut self, c: char) -> Step {
        match c {
            c if c.is_whitespace() => Ok(()),
            ',' => {
                self.element_ends()?;
                let frame = self.top()?;
                match &mut frame.kind {
                    Kind::Round { comma } => *comma = true,
                    Kind::Curly => self.becomes_set(),
                    _ => {}
                }
                self.state = State::Value;
                Ok(())
            }
            ':' => self.key_ends(),
            ')' | ']' | '}' => {
                self.element_ends()?;
                self.close(c)
            }
            c => Err(format!("`{c}` stands after a value")),
        }
    }

    fn element_ends(&mut self) -> Step {
        let frame = self.top()?;
        if frame.kind == Kind::Dict && !frame.keyed {
            return Err("a key has no value".to_owned());
        }
        frame.keyed = false;
        frame.filled = true;
        Ok(())
    }

    /// Turns the bracket into that of a set.
    fn becomes_set(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.kind = Kind::Set;
            self.out.replace_range(frame.start..=frame.start, "[");
        }
    }

    /// Turns the value into the key of a dictionary; JSON keys are strings only.
    fn key_ends(&mut self) -> Step {
        let frame = self.top()?;
        if !matches!(frame.kind, Kind::Curly | Kind::Dict) || frame.keyed {
            return Err("`:` stands after a value".to_owned());
        }
        frame.kind = Kind::Dict;
        frame.keyed = true;
        let element = frame.element;
        match self.out.as_bytes().get(element) {
            Some(b'"') => {}
            Some(b'[' | b'{' | b' ') => return Err("a key is no string".to_owned()),
            _ => {
                self.out.insert(element, '"');
                self.out.push('"');
            }
        }
        self.out.push_str(": ");
        self.state = State::Value;
        Ok(())
    }

    fn close(&mut self, c: char) -> Step {
        let frame = self.top()?;
        if frame.keyed {
            return Err("a key has no value".to_owned());
        }
        let (start, empty_set) = (frame.start, frame.kind == Kind::Curly && frame.filled);
        let bracket = match (frame.kind, c) {
            (Kind::Arguments, ')') => "}",
            (Kind::List, ']') | (Kind::Set, '}') => "]",
            // Parentheses around one value are not a tuple: a blank replaces them.
            (Kind::Round { comma: false }, ')') if frame.filled => {
                self.out.replace_range(start..=start, " ");
                ""
            }
            (Kind::Round { .. }, ')') => "]",
            (Kind::Curly, '}') if empty_set => {
                self.becomes_set();
                "]"
            }
            (Kind::Curly | Kind::Dict, '}') => "}",
            _ => return Err(format!("`{c}` closes nothing")),
        };
        self.out.push_str(bracket);
        self.stack.pop();
        self.value_ends();
        Ok(())
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
    let values: [Value; 1] = serde_json::from_str::<Vec<Value>>(&list.out).ok()?.try_into().ok()?;
    let [value] = values;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::super::fed::whole_and_by_character;
    use super::*;

    /// Converts arguments to JSON text.
    fn read(text: &str, names: &[&str]) -> Result<String, String> {
        let new = || PythonArguments::new(names.iter().map(|name| (*name).to_owned()).collect(), Vec::new());
        whole_and_by_character(text, new, PythonArguments::follow, PythonArguments::certain)
    }

    #[test]
    fn arguments_become_json() {
        let cases = [
            (")", "{}"),
            ("a=1)", r#"{"a": 1}"#),
            (" a = 1 , b = 'x' , )", r#"{"a": 1, "b": "x"}"#),
            ("a=True, b=false, c=None, d=null)", r#"{"a": true, "b": false, "c": null, "d": null}"#),
            (
                "a=07, b=-1_000, c=0xff, d=.5, e=1e-3, f=-2E+4)",
                r#"{"a": 7, "b": -1000, "c": 255, "d": 0.5, "e": 1e-3, "f": -2e+4}"#,
            ),
            ("a=[1, [2, 'x'], []])", r#"{"a": [1, [2, "x"], []]}"#),
            (
                "a={'k': {\"n\": 1}, 2: 'two', None: [],}, b={})",
                r#"{"a": {"k": {"n": 1}, "2": "two", "null": []}, "b": {}}"#,
            ),
            (
                "a=(1, 2), b=(1,), c=(1), d=(), e=((1, 2)))",
                r#"{"a": [1, 2], "b": [1], "c":  1, "d": [], "e":  [1, 2]}"#,
            ),
            ("a={1}, b={'x', 'y'})", r#"{"a": [1], "b": ["x", "y"]}"#),
            ("a-b.c=1)", r#"{"a-b.c": 1}"#),
        ];
        for (text, json) in cases {
            assert_eq!(read(text, &[]).as_deref(), Ok(json), "{text}");
            serde_json::from_str::<Value>(json).unwrap();
        }
    }

    #[test]
    fn strings_are_decoded() {
        let cases = [
            (r#"a='')"#, r#"{"a": ""}"#),
            (r#"a='it\'s', b="a \"b\"")"#, r#"{"a": "it's", "b": "a \"b\""}"#),
            (r#"a='\n\t\\ \q \/')"#, r#"{"a": "\n\t\\ \\q /"}"#),
            (r#"a='\x41\u00e9\U0001F642\101\0')"#, r#"{"a": "Aé🙂A\u0000"}"#),
            (r#"a='\ud83d\ude42 \ud83d \ude42')"#, r#"{"a": "🙂 � �"}"#),
            (r#"a='\x4 \u12 \N{DASH}')"#, r#"{"a": "\\x4 \\u12 \\N{DASH}"}"#),
            (r#"a=r'\d+\'', b=b"x", c=f'{y}')"#, r#"{"a": "\\d+\\'", "b": "x", "c": "{y}"}"#),
            ("a='''it's\n\"so\"''', b=\"\"\"\"\"\")", r#"{"a": "it's\n\"so\"", "b": ""}"#),
            ("a='two\\\nlines\nhere')", r#"{"a": "twolines\nhere"}"#),
            ("a='sed -n '1,5p' f')", r#"{"a": "sed -n '1,5p' f"}"#),
            ("a='grep 'x' 'y' f' , b=1)", r#"{"a": "grep 'x' 'y' f", "b": 1}"#),
        ];
        for (text, json) in cases {
            assert_eq!(read(text, &[]).as_deref(), Ok(json), "{text}");
            serde_json::from_str::<Value>(json).unwrap();
        }
    }

    #[test]
    fn positional_arguments_take_the_declared_names() {
        assert_eq!(read("1, 'x')", &["n", "s"]).as_deref(), Ok(r#"{"n": 1, "s": "x"}"#));
        assert_eq!(read("[1], s=True)", &["n", "s"]).as_deref(), Ok(r#"{"n": [1], "s": true}"#));
        assert_eq!(read("1, 2)", &["n"]).unwrap_err(), "an argument has no name");
        assert_eq!(read("1)", &[]).unwrap_err(), "an argument has no name");
    }

    #[test]
    fn what_is_no_literal_is_refused() {
        let deep = format!("a={}", "[".repeat(200));
        let texts = [
            "a=",
            "a=)",
            "a=,",
            "a=x)",
            "a=inf)",
            "a=1 2)",
            "a=1]",
            "a=[1}",
            "a={'k'})x",
            "a={'k': })",
            "a={'k': 1, 'j'})",
            "a={[1]: 2})",
            "a={1, 2: 3})",
            "a=1:2)",
            "a=f(1))",
            "a=@)",
            "a==1)",
            "a=b=1)",
            "A=\t)",
            &deep,
        ];
        for text in texts {
            assert!(read(text, &["a"]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_certain_comes_early() {
        let mut arguments = PythonArguments::new(Vec::new(), Vec::new());
        let mut certain = |text: &str| {
            arguments.follow(text).unwrap();
            arguments.certain().to_owned()
        };
        assert_eq!(certain("a="), r#"{"a": "#);
        assert_eq!(certain("a='some te"), r#"{"a": "some te"#);
        assert_eq!(certain("a='some te', b={'k'"), r#"{"a": "some te", "b": "#);
        assert_eq!(certain("a='some te', b={'k': [1"), r#"{"a": "some te", "b": {"k": ["#);
    }

    #[test]
    fn literals() {
        assert_eq!(python_literal("{'a': (1, None)}"), Some(serde_json::json!({"a": [1, null]})));
        for text in ["", "1, 2", "]", "[", "1]", "x"] {
            assert_eq!(python_literal(text), None, "{text}");
        }
    }
}
