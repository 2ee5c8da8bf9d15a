//! Parser of GBNF.

use std::collections::HashMap;

use super::expression::Expression;
use super::{GbnfError, cursor};

/// Maximum depth of parentheses, and number of operators after an element.
const MAX_DEPTH: usize = 64;
/// Maximum length of a grammar in bytes, and number of its rules.
const MAX_BYTES: usize = 256 << 10;
const MAX_RULES: usize = 2_000;
/// Maximum bound of a repetition, that of llama.cpp.
const MAX_REPEAT: u32 = 2_000;

type Result<T> = std::result::Result<T, GbnfError>;

/// Parses a grammar to the bodies of its rules; the first one is that of `root`.
pub(super) fn parse(text: &str) -> Result<Vec<Expression>> {
    if text.len() > MAX_BYTES {
        let message = format!("{} bytes, at most {MAX_BYTES} are read", text.len());
        return Err(GbnfError { line: 1, message });
    }
    let mut parser = Parser { text, rest: text, depth: 0, rules: Vec::new(), indexes: HashMap::new() };
    parser.mention("root");
    parser.skip_blanks(true);
    while !parser.rest.is_empty() {
        parser.rule()?;
        parser.skip_blanks(true);
    }
    parser.finish()
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
    /// Rules in order of their first mention, each with what follows it; without a body until defined.
    rules: Vec<(&'t str, &'t str, Option<Expression>)>,
    indexes: HashMap<&'t str, usize>,
}

impl<'t> Parser<'t> {
    fn finish(self) -> Result<Vec<Expression>> {
        let text = self.text;
        let undefined =
            |name, rest| GbnfError { line: line(text, rest), message: format!("no rule `{name}`") };
        self.rules.into_iter().map(|(name, rest, body)| body.ok_or_else(|| undefined(name, rest))).collect()
    }

    /// `NAME ::= ALTERNATIVES`, up to the end of the line.
    fn rule(&mut self) -> Result<()> {
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected("the name of a rule"));
        }
        let rule = self.mention(name);
        if self.rules.len() > MAX_RULES {
            return Err(self.fault(format!("more than {MAX_RULES} rules")));
        }
        self.skip_blanks(false);
        if !self.take("::=") {
            return Err(self.expected(&format!("`::=` after `{name}`")));
        }
        if self.rules[rule].2.is_some() {
            return Err(self.fault(format!("the rule `{name}` is defined twice")));
        }
        self.skip_blanks(true);
        let body = self.alternatives()?;
        self.rules[rule].2 = Some(body);
        match self.rest.chars().next() {
            None | Some('\n' | '\r') => Ok(()),
            _ => Err(self.expected("the end of the line")),
        }
    }

    fn alternatives(&mut self) -> Result<Expression> {
        let mut options = vec![self.sequence()?];
        while self.next_alternative() {
            self.skip_blanks(true);
            options.push(self.sequence()?);
        }
        Ok(match options.len() {
            1 => options.remove(0),
            _ => Expression::Alternatives(options),
        })
    }

    /// Takes a `|`, which may be on the next line.
    fn next_alternative(&mut self) -> bool {
        let before = self.rest;
        self.skip_blanks(true);
        let found = self.take("|");
        if !found {
            self.rest = before;
        }
        found
    }

    fn sequence(&mut self) -> Result<Expression> {
        let mut parts = Vec::new();
        while let Some(part) = self.element()? {
            let part = self.repeated(part)?;
            parts.push(part);
            self.skip_blanks(self.depth > 0);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expression::Sequence(parts),
        })
    }

    /// A literal, a class of characters, a rule or a group; `None` at any other character.
    fn element(&mut self) -> Result<Option<Expression>> {
        Ok(Some(match self.rest.chars().next() {
            Some('"') => self.literal()?,
            Some('[') => self.class()?,
            Some('(') => self.group()?,
            Some('.') => {
                self.rest = &self.rest[1..];
                Expression::Regex("(?s:.)".to_owned())
            }
            Some('<' | '!') => return Err(self.fault("elements that name tokens are not supported")),
            Some(first) if is_name(first) => {
                let name = self.name();
                Expression::Rule(self.mention(name))
            }
            _ => return Ok(None),
        }))
    }

    fn literal(&mut self) -> Result<Expression> {
        self.rest = &self.rest[1..];
        let mut text = String::new();
        while !self.take("\"") {
            text.push(self.character("`\"`")?);
        }
        Ok(Expression::Literal(text))
    }

    fn class(&mut self) -> Result<Expression> {
        self.rest = &self.rest[1..];
        let mut class = String::from(if self.take("^") { "[^" } else { "[" });
        let empty = class.len();
        while !self.take("]") {
            let first = self.character("`]`")?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let last = if is_range && self.take("-") { self.end_of_range()? } else { first };
            if last < first {
                return Err(self.fault(format!("the range from {first:?} to {last:?} is empty")));
            }
            class += &format!("\\u{{{:x}}}-\\u{{{:x}}}", u32::from(first), u32::from(last));
        }
        match (class.len() == empty, class.len()) {
            (true, 1) => Err(self.fault("a class without characters")),
            (true, _) => Ok(Expression::Regex("(?s:.)".to_owned())),
            _ => Ok(Expression::Regex(class + "]")),
        }
    }

    fn end_of_range(&mut self) -> Result<char> {
        match self.rest.starts_with(['\n', '\r']) {
            true => Err(self.expected("a character after `-`")),
            false => self.character("a character after `-`"),
        }
    }

    fn group(&mut self) -> Result<Expression> {
        self.rest = &self.rest[1..];
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(format!("groups are nested deeper than {MAX_DEPTH}")));
        }
        self.skip_blanks(true);
        let inner = self.alternatives()?;
        if !self.take(")") {
            return Err(self.expected("`)`"));
        }
        self.depth -= 1;
        Ok(inner)
    }

    /// Reads the operators after an element.
    fn repeated(&mut self, mut of: Expression) -> Result<Expression> {
        for _ in 0..=MAX_DEPTH {
            self.skip_blanks(self.depth > 0);
            let (min, max) = match self.rest.chars().next() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.bounds()?,
                _ => return Ok(of),
            };
            self.rest = &self.rest[1..];
            of = match max {
                Some(0) => Expression::Sequence(Vec::new()),
                max => Expression::Repeat { of: Box::new(of), min, max },
            };
        }
        Err(self.fault(format!("more than {MAX_DEPTH} operators after an element")))
    }

    /// `{m}`, `{m,}` or `{m,n}`, up to the closing brace.
    fn bounds(&mut self) -> Result<(u32, Option<u32>)> {
        self.rest = &self.rest[1..];
        let min = self.number()?;
        let max = match self.take(",") {
            false => Some(min),
            true if self.rest.trim_start().starts_with('}') => None,
            true => Some(self.number()?),
        };
        self.skip_blanks(false);
        match self.rest.starts_with('}') {
            _ if max.is_some_and(|max| max < min) => {
                Err(self.fault("the bounds of a repetition are reversed"))
            }
            true => Ok((min, max)),
            false => Err(self.expected("`}`")),
        }
    }

    fn number(&mut self) -> Result<u32> {
        self.skip_blanks(false);
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let number: Option<u32> = self.rest[..end].parse().ok().filter(|number| *number <= MAX_REPEAT);
        let number = number.ok_or_else(|| self.expected(&format!("a number up to {MAX_REPEAT}")))?;
        self.rest = &self.rest[end..];
        self.skip_blanks(false);
        Ok(number)
    }

    /// A character of a literal or class, or its escape sequence; `close` ends them.
    fn character(&mut self, close: &str) -> Result<char> {
        let mut characters = self.rest.chars();
        let first = characters.next().ok_or_else(|| self.expected(close))?;
        self.rest = characters.as_str();
        if first != '\\' {
            return Ok(first);
        }
        let escape = characters.next().ok_or_else(|| self.expected("a character after `\\`"))?;
        self.rest = characters.as_str();
        match escape {
            'x' => self.code_point(2),
            'u' => self.code_point(4),
            'U' => self.code_point(8),
            't' => Ok('\t'),
            'r' => Ok('\r'),
            'n' => Ok('\n'),
            '\\' | '"' | '[' | ']' | '-' | '^' | '/' => Ok(escape),
            _ => Err(self.fault(format!("the escape sequence `\\{escape}` is unknown"))),
        }
    }

    fn code_point(&mut self, digits: usize) -> Result<char> {
        let hex = self.rest.get(..digits).filter(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()));
        let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let code =
            code.ok_or_else(|| self.expected(&format!("{digits} hexadecimal digits of a character")))?;
        self.rest = &self.rest[digits..];
        Ok(code)
    }

    fn name(&mut self) -> &'t str {
        cursor::take_while(&mut self.rest, is_name)
    }

    /// The index of a rule.
    fn mention(&mut self, name: &'t str) -> usize {
        let (rules, rest) = (&mut self.rules, self.rest);
        *self.indexes.entry(name).or_insert_with(|| {
            rules.push((name, rest, None));
            rules.len() - 1
        })
    }

    fn take(&mut self, text: &str) -> bool {
        cursor::take(&mut self.rest, text)
    }

    fn skip_blanks(&mut self, lines: bool) {
        cursor::skip_blanks(&mut self.rest, lines, &["#"]);
    }

    fn expected(&self, what: &str) -> GbnfError {
        let found = match self.rest.chars().next() {
            None => "the end".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(_) => {
                format!("`{}`", self.rest.lines().next().unwrap_or("").chars().take(20).collect::<String>())
            }
        };
        self.fault(format!("expected {what}, found {found}"))
    }

    fn fault(&self, message: impl Into<String>) -> GbnfError {
        GbnfError { line: line(self.text, self.rest), message: message.into() }
    }
}

/// Line of a text at which `rest` of it begins, from 1.
fn line(text: &str, rest: &str) -> usize {
    text[..text.len() - rest.len()].matches('\n').count() + 1
}

/// Returns true if a line begins with this name, and not with a longer one.
pub(super) fn begins_with_name(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|after| !after.starts_with(is_name))
}

/// The rest of a line after the name that it begins with, and blanks.
pub(super) fn after_name(line: &str) -> Option<&str> {
    line.starts_with(is_name).then(|| line.trim_start_matches(is_name).trim_start())
}

/// Characters of names; the underscore is not in llama.cpp's.
fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}
