//! Lexer, with `trim_blocks` and `lstrip_blocks`.

use super::escapes::unescape;
use super::tokens::{Kind, OPERATORS, Token};
use crate::error::{BoxedResult as Result, Error};

/// Maximum source size in bytes. Published templates have up to 40 KB.
const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Tokenizes a source; the last token is `End`.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(Error::syntax(format!("a template has at most {MAX_SOURCE_BYTES} bytes"), 1));
    }
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { source, at: 0, line: 1, tokens: Vec::new() };
    lexer.outside()?;
    lexer.push(Kind::End);
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    /// Byte offset of the next character.
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

/// Kind of a tag, which determines its end.
#[derive(Clone, Copy, PartialEq)]
enum Tag {
    Variable,
    Block,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { kind, line: self.line });
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.source.as_bytes()[self.at..self.at + bytes];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at += bytes;
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start().len());
    }

    /// Reads text outside of tags, up to the end.
    fn outside(&mut self) -> Result<()> {
        while !self.rest().is_empty() {
            let rest = self.rest();
            let opens = |at: &usize| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
            let tag = rest.match_indices('{').map(|(at, _)| at).find(opens);
            let Some(tag) = tag else {
                let data = rest.to_owned();
                self.data(data);
                break;
            };
            let (text, from) = rest.split_at(tag);
            let sign = from[2..].chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let data = self.stripped(text, sign, from.starts_with("{{")).to_owned();
            let open = from[..2].to_owned();
            self.data(data);
            self.advance(tag + 2 + usize::from(sign.is_some()));
            match open.as_str() {
                "{{" => self.inside(Kind::VariableBegin, Tag::Variable)?,
                "{#" => self.comment()?,
                _ if self.raw()? => {}
                _ => self.inside(Kind::BlockBegin, Tag::Block)?,
            }
        }
        Ok(())
    }

    fn data(&mut self, data: String) {
        if !data.is_empty() {
            self.push(Kind::Data(data));
        }
    }

    /// Strips the text before a tag, as the tag's sign and `lstrip_blocks` require.
    fn stripped<'t>(&self, text: &'t str, sign: Option<char>, is_variable: bool) -> &'t str {
        match sign {
            Some('-') => text.trim_end(),
            None if !is_variable => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let starts_line = line > 0 || self.at == 0 || self.source[..self.at].ends_with('\n');
                if starts_line && text[line..].trim().is_empty() { &text[..line] } else { text }
            }
            _ => text,
        }
    }

    /// Skips the end of a block or comment: `-` also skips all space after it, no sign one newline.
    fn close(&mut self, end: &str) -> bool {
        for (sign, trims) in [("-", true), ("+", false), ("", false)] {
            if self.rest().strip_prefix(sign).is_some_and(|rest| rest.starts_with(end)) {
                self.advance(sign.len() + end.len());
                if trims {
                    self.skip_space();
                } else if sign.is_empty() && self.rest().starts_with('\n') {
                    self.advance(1);
                }
                return true;
            }
        }
        false
    }

    fn comment(&mut self) -> Result<()> {
        let line = self.line;
        let end = self.rest().find("#}").ok_or_else(|| Error::syntax("missing end of comment", line))?;
        // A sign before the end belongs to it.
        let sign = usize::from(self.rest()[..end].ends_with(['-', '+']));
        self.advance(end - sign);
        self.close("#}");
        Ok(())
    }

    /// Reads a raw block, if this is one; `{%` has been read.
    fn raw(&mut self) -> Result<bool> {
        let word = self.rest().trim_start();
        let Some(after) = word.strip_prefix("raw").map(str::trim_start) else { return Ok(false) };
        let end = ["-%}", "%}"].into_iter().find(|end| after.starts_with(end));
        let Some(end) = end else { return Ok(false) };
        let line = self.line;
        self.advance(self.rest().len() - after.len() + end.len());
        if end.starts_with('-') {
            self.skip_space();
        }
        let mut from = 0;
        loop {
            let rest = self.rest();
            let tag = rest[from..].find("{%").map(|at| at + from);
            let tag = tag.ok_or_else(|| Error::syntax("missing end of raw block", line))?;
            let inner = &rest[tag + 2..];
            let sign = inner.chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let name = inner[usize::from(sign.is_some())..].trim_start();
            let after = name.strip_prefix("endraw").map(str::trim_start);
            if let Some(after) =
                after.filter(|after| ["-%}", "+%}", "%}"].iter().any(|end| after.starts_with(end)))
            {
                let length = rest.len() - after.len();
                let data = self.stripped(&rest[..tag], sign, false).to_owned();
                self.data(data);
                self.advance(length);
                self.close("%}");
                return Ok(true);
            }
            from = tag + 2;
        }
    }

    /// Reads the tokens of a tag, including its start and end.
    fn inside(&mut self, begin: Kind, tag: Tag) -> Result<()> {
        let first = self.line;
        self.push(begin);
        let mut open: Vec<&str> = Vec::new();
        loop {
            self.skip_space();
            if self.rest().is_empty() {
                return Err(Error::syntax("unexpected end of template", first));
            }
            if open.is_empty() && self.tag_end(tag) {
                return Ok(());
            }
            let token = self.token()?;
            if let Kind::Operator(operator) = &token {
                self.balance(&mut open, operator)?;
            }
        }
    }

    fn tag_end(&mut self, tag: Tag) -> bool {
        let line = self.line;
        let (ended, kind) = match tag {
            Tag::Block => (self.close("%}"), Kind::BlockEnd),
            Tag::Variable if self.rest().starts_with("-}}") => {
                self.advance(3);
                self.skip_space();
                (true, Kind::VariableEnd)
            }
            Tag::Variable => {
                let ends = self.rest().starts_with("}}");
                self.advance(if ends { 2 } else { 0 });
                (ends, Kind::VariableEnd)
            }
        };
        if ended {
            self.tokens.push(Token { kind, line });
        }
        ended
    }

    /// Checks that brackets close in order; a tag cannot end inside brackets.
    fn balance(&self, open: &mut Vec<&'static str>, operator: &'static str) -> Result<()> {
        let close = match operator {
            "(" => ")",
            "[" => "]",
            "{" => "}",
            ")" | "]" | "}" => return self.closes(open.pop(), operator),
            _ => return Ok(()),
        };
        open.push(close);
        Ok(())
    }

    fn closes(&self, expected: Option<&str>, operator: &str) -> Result<()> {
        match expected {
            Some(expected) if expected == operator => Ok(()),
            Some(expected) => {
                Err(Error::syntax(format!("unexpected '{operator}', expected '{expected}'"), self.line))
            }
            None => Err(Error::syntax(format!("unexpected '{operator}'"), self.line)),
        }
    }

    /// Reads one token of an expression.
    fn token(&mut self) -> Result<Kind> {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or(' ');
        let (kind, length) = if first.is_ascii_digit() {
            number(rest).map_err(|message| Error::syntax(message, self.line))?
        } else if first == '"' || first == '\'' {
            string(rest).map_err(|message| Error::syntax(message, self.line))?
        } else if first == '_' || first.is_alphabetic() {
            let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            (Kind::Name(rest[..length].to_owned()), length)
        } else {
            let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
            let operator =
                operator.ok_or_else(|| Error::syntax(format!("unexpected char {first:?}"), self.line))?;
            (Kind::Operator(operator), operator.len())
        };
        self.push(kind.clone());
        self.advance(length);
        Ok(kind)
    }
}

/// Reads a string literal; returns it with its length.
fn string(rest: &str) -> Result<(Kind, usize), String> {
    let quote = rest.as_bytes()[0];
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if byte == quote => return Ok((Kind::Text(unescape(&rest[1..at])?), at + 1)),
            _ => {}
        }
    }
    Err("a string does not end".to_owned())
}

/// Reads a number literal; returns it with its length.
fn number(rest: &str) -> Result<(Kind, usize), String> {
    let lower = |at: usize| rest.as_bytes().get(at).map(u8::to_ascii_lowercase);
    let base = match (lower(0), lower(1)) {
        (Some(b'0'), Some(b'x')) => 16,
        (Some(b'0'), Some(b'o')) => 8,
        (Some(b'0'), Some(b'b')) => 2,
        _ => return decimal(rest),
    };
    let digits = digits(&rest[2..], base);
    if digits == 0 {
        return decimal(rest);
    }
    let number = i128::from_str_radix(&rest[2..2 + digits].replace('_', ""), base);
    Ok((Kind::Int(number.map_err(|_| TOO_LARGE)?), 2 + digits))
}

const TOO_LARGE: &str = "an integer literal has more than 127 bits";

fn decimal(rest: &str) -> Result<(Kind, usize), String> {
    let whole = digits(rest, 10);
    let mut length = whole;
    if rest[length..].starts_with('.') {
        let fraction = digits(&rest[length + 1..], 10);
        length += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..], 10);
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let text = rest[..length].replace('_', "");
    if length > whole {
        return Ok((Kind::Float(text.parse().map_err(|_| "not a number".to_owned())?), length));
    }
    if text.starts_with('0') && text.bytes().any(|byte| byte != b'0') {
        return Err("an integer does not begin with 0".to_owned());
    }
    Ok((Kind::Int(text.parse().map_err(|_| TOO_LARGE)?), length))
}

/// Length of the leading digits, with single underscores between them.
fn digits(text: &str, base: u32) -> usize {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_digit(base));
    let mut length = 0;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let continues = is_digit(Some(c)) || (c == '_' && length > 0 && is_digit(characters.peek().copied()));
        if !continues {
            break;
        }
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens as text; text outside of tags is in quotes.
    fn shown(source: &str) -> String {
        let tokens = match tokens(source) {
            Ok(tokens) => tokens,
            Err(error) => match *error {
                Error::Syntax { line, .. } => return format!("line {line}"),
                other => return other.to_string(),
            },
        };
        let shown = tokens.iter().map(|token| match &token.kind {
            Kind::Data(data) => format!("{data:?}"),
            kind => kind.shown(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tags_trim_surrounding_space() {
        let cases = [
            ("a \n {% x %} \n b", r#""a \n" {% x %} " \n b""#),
            ("  {% x %}\n  b", r#"{% x %} "  b""#),
            ("a {%- x -%} \n b", r#""a" {% x %} "b""#),
            ("  {%+ x +%}\n", r#""  " {% x %}"#),
            ("a {{- x -}} b\n\n", r#""a" {{ x }} "b\n""#),
            ("  {# c #}\n{#- c -#} d", r#""d""#),
            ("{% raw %} {{ x }} {%- endraw %}\nb", r#"" {{ x }}" "b""#),
            ("{{ {'a': {}} }}", r#"{{ { a string : { } } }}"#),
            ("a\r\nb\rc", r#""a\nb\nc""#),
        ];
        for (source, expected) in cases {
            assert_eq!(shown(source), format!("{expected} the end of the template"), "{source:?}");
        }
    }

    #[test]
    fn unterminated_syntax_error_has_a_line() {
        for (source, line) in [("{{ x", 1), ("\n{{ (x }}", 2), ("{{ 'x }}", 1), ("{# x", 1), ("{{ ? }}", 1)] {
            assert_eq!(shown(source), format!("line {line}"), "{source:?}");
        }
    }
}
