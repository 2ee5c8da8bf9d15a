//! Incremental decoding of Python string literals.

use super::push_json_char;

/// A string literal being read; its content is written to JSON text, without quotes.
#[derive(Debug, Clone)]
pub(super) struct PythonString {
    quote: char,
    raw: bool,
    triple: bool,
    state: State,
    /// High surrogate of a character written as two `\u` escapes.
    high_surrogate: Option<u32>,
}

#[derive(Debug, Clone)]
enum State {
    /// Right after the opening quote.
    Opened,
    /// Inside the text.
    Text,
    /// After a backslash.
    Escape,
    /// Inside a numeric escape; `prefix` is the text between the backslash and the digits.
    Digits { prefix: &'static str, radix: u32, wanted: usize, digits: String },
    /// After a quote that ends the string if the next character (after whitespace) can follow a value.
    /// `empty`: it came right after the opening quote.
    Quote { empty: bool, blanks: String },
    /// After one or two of the three quotes that may end it.
    Quotes(usize),
}

/// Effect of a character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The string continues.
    Inside,
    /// The string ended with this character.
    Last,
    /// The string ended before this character, which is not consumed.
    Before,
}

impl PythonString {
    pub(super) fn new(quote: char, raw: bool) -> Self {
        Self { quote, raw, triple: false, state: State::Opened, high_surrogate: None }
    }

    /// Consumes the next character.
    ///
    /// In a single-quoted string, a quote that is followed by nothing valid in a call is text: models forget
    /// to escape the quotes of a command line (`'sed -n '1,5p' file'`).
    pub(super) fn push(&mut self, c: char, out: &mut String) -> Taken {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Opened if c == self.quote => {
                self.state = State::Quote { empty: true, blanks: String::new() }
            }
            State::Opened | State::Text => self.text(c, out),
            State::Escape => self.escape(c, out),
            State::Digits { prefix, radix, wanted, digits } => {
                self.digits(prefix, radix, wanted, digits, c, out)
            }
            State::Quote { empty, blanks } => return self.after_quote(empty, blanks, c, out),
            State::Quotes(count) => return self.after_quotes(count, c, out),
        }
        Taken::Inside
    }

    fn text(&mut self, c: char, out: &mut String) {
        match c {
            '\\' => self.state = State::Escape,
            c if c == self.quote && self.triple => self.state = State::Quotes(1),
            c if c == self.quote => self.state = State::Quote { empty: false, blanks: String::new() },
            c => self.emit(c, out),
        }
    }

    fn emit(&mut self, c: char, out: &mut String) {
        self.end_pair(out);
        push_json_char(out, c);
    }

    /// Replaces an unpaired surrogate by the replacement character.
    fn end_pair(&mut self, out: &mut String) {
        if self.high_surrogate.take().is_some() {
            push_json_char(out, char::REPLACEMENT_CHARACTER);
        }
    }

    fn after_quote(&mut self, empty: bool, mut blanks: String, c: char, out: &mut String) -> Taken {
        match c {
            c if c == self.quote && empty && blanks.is_empty() => self.triple = true,
            ',' | ')' | ']' | '}' | ':' => {
                self.end_pair(out);
                return Taken::Before;
            }
            c if c.is_whitespace() => {
                blanks.push(c);
                self.state = State::Quote { empty, blanks };
            }
            c => {
                let quote = self.quote;
                std::iter::once(quote).chain(blanks.chars()).for_each(|data| self.emit(data, out));
                self.text(c, out);
            }
        }
        Taken::Inside
    }

    fn after_quotes(&mut self, count: usize, c: char, out: &mut String) -> Taken {
        if c != self.quote {
            (0..count).for_each(|_| self.emit(self.quote, out));
            self.text(c, out);
        } else if count < 2 {
            self.state = State::Quotes(count + 1);
        } else {
            self.end_pair(out);
            return Taken::Last;
        }
        Taken::Inside
    }

    fn escape(&mut self, c: char, out: &mut String) {
        let number = |prefix, radix, wanted, digits| State::Digits { prefix, radix, wanted, digits };
        let decoded = match c {
            // A raw string keeps the backslash; a quote after it does not end the string.
            c if self.raw => {
                self.emit('\\', out);
                c
            }
            'x' => return self.state = number("x", 16, 2, String::new()),
            'u' => return self.state = number("u", 16, 4, String::new()),
            'U' => return self.state = number("U", 16, 8, String::new()),
            '0'..='7' => return self.state = number("", 8, 3, c.to_string()),
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '/' => c,
            // Line continuation.
            '\n' => return,
            // Python keeps the backslash of an unknown escape.
            c => {
                self.emit('\\', out);
                c
            }
        };
        self.emit(decoded, out);
    }

    fn digits(
        &mut self,
        prefix: &'static str,
        radix: u32,
        wanted: usize,
        mut digits: String,
        c: char,
        out: &mut String,
    ) {
        let more = c.is_digit(radix);
        if more {
            digits.push(c);
        }
        if more && digits.len() < wanted {
            self.state = State::Digits { prefix, radix, wanted, digits };
            return;
        }
        match u32::from_str_radix(&digits, radix) {
            Ok(code) if digits.len() == wanted || radix == 8 => self.code(code, out),
            // Not an escape: the text stays unchanged.
            _ => std::iter::once('\\')
                .chain(prefix.chars())
                .chain(digits.chars())
                .for_each(|c| self.emit(c, out)),
        }
        if !more {
            self.text(c, out);
        }
    }

    /// Emits a character by its code; surrogate pairs are combined.
    fn code(&mut self, code: u32, out: &mut String) {
        let code = match (self.high_surrogate.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (high, code) => {
                self.high_surrogate = high;
                self.end_pair(out);
                code
            }
        };
        match code {
            0xd800..=0xdbff => self.high_surrogate = Some(code),
            code => self.emit(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), out),
        }
    }
}
