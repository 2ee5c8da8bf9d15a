//! Parser of grammars of Python's Lark, as far as they have regular expressions.

use std::collections::HashMap;

use super::cursor;
use super::expression::Expression;

/// Maximum depth of groups.
const MAX_DEPTH: usize = 64;
/// Maximum bound of a repetition.
const MAX_REPEAT: u32 = 2_000;

/// Terminals of the module `common`, as regular expressions.
const COMMON: [(&str, &str); 20] = [
    ("CNAME", "[_A-Za-z][_A-Za-z0-9]*"),
    ("CR", r"\r"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("DIGIT", "[0-9]"),
    ("ESCAPED_STRING", r#""(?:[^"\\\n]|\\.)*""#),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("LCASE_LETTER", "[a-z]"),
    ("LETTER", "[A-Za-z]"),
    ("LF", r"\n"),
    ("NEWLINE", r"(?:\r?\n)+"),
    ("NUMBER", r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("SIGNED_NUMBER", r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"),
    ("UCASE_LETTER", "[A-Z]"),
    ("WORD", "[A-Za-z]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("WS_INLINE", r"[ \t]+"),
    ("SIGNED_FLOAT", r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"),
];

/// Parses a grammar to the bodies of its rules; the first one is that of `start`. `None` for faulty grammars
/// and for those that have no regular expression for another reason than recursion.
pub(super) fn parse(text: &str) -> Option<Vec<Expression>> {
    let mut parser = Parser { rest: text, depth: 0, rules: Vec::new(), indexes: HashMap::new() };
    parser.mention("start");
    parser.skip_blanks(true);
    while !parser.rest.is_empty() {
        match parser.take("%") {
            true => parser.import()?,
            false => parser.rule()?,
        }
        parser.skip_blanks(true);
    }
    parser.rules.into_iter().collect()
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
    rules: Vec<Option<Expression>>,
    indexes: HashMap<&'t str, usize>,
}

impl<'t> Parser<'t> {
    /// `import common.NAME`, with an alias, or `import common (NAME, …)`; `None` for other directives.
    fn import(&mut self) -> Option<()> {
        self.keyword("import")?;
        self.keyword("common")?;
        if self.take(".") {
            let name = self.name()?;
            self.skip_blanks(false);
            let alias = if self.take("->") { self.skipped_name()? } else { name };
            return self.define(alias, common(name)?);
        }
        self.expect("(")?;
        loop {
            let name = self.skipped_name()?;
            self.define(name, common(name)?)?;
            self.skip_blanks(true);
            if self.take(")") {
                return Some(());
            }
            self.expect(",")?;
        }
    }

    /// `name: expansions`, up to the end of the line.
    fn rule(&mut self) -> Option<()> {
        self.rest = self.rest.trim_start_matches(['?', '!']);
        let name = self.name()?;
        if self.take(".") {
            self.number()?;
        }
        self.skip_blanks(false);
        self.expect(":")?;
        let body = self.alternatives()?;
        self.define(name, body)?;
        matches!(self.rest.chars().next(), None | Some('\n' | '\r')).then_some(())
    }

    fn define(&mut self, name: &'t str, body: Expression) -> Option<()> {
        let rule = self.mention(name);
        self.rules[rule].replace(body).is_none().then_some(())
    }

    fn alternatives(&mut self) -> Option<Expression> {
        let mut options = vec![self.sequence()?];
        loop {
            let before = self.rest;
            self.skip_blanks(true);
            if !self.take("|") {
                self.rest = before;
                break;
            }
            options.push(self.sequence()?);
        }
        Some(if options.len() == 1 { options.remove(0) } else { Expression::Alternatives(options) })
    }

    /// Elements, and the name of the alternative, which has no effect on its texts.
    fn sequence(&mut self) -> Option<Expression> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks(self.depth > 0);
            if self.take("->") {
                self.skipped_name()?;
            }
            match self.rest.chars().next() {
                None | Some('\n' | '\r' | '|' | ')' | ']') => break,
                Some(_) => {
                    let element = self.element()?;
                    parts.push(self.repeated(element)?);
                }
            }
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Expression::Sequence(parts) })
    }

    fn element(&mut self) -> Option<Expression> {
        if self.take("(") {
            return self.group(")");
        }
        if self.take("[") {
            let of = Box::new(self.group("]")?);
            return Some(Expression::Repeat { of, min: 0, max: Some(1) });
        }
        if self.rest.starts_with('"') {
            return self.literal();
        }
        if self.take("/") {
            let regex = self.up_to('/')?;
            return Some(Expression::Regex(self.with_flags(regex)?));
        }
        let name = self.name()?;
        Some(Expression::Rule(self.mention(name)))
    }

    fn group(&mut self, close: &str) -> Option<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let inner = self.alternatives()?;
        self.skip_blanks(true);
        self.depth -= 1;
        self.expect(close)?;
        Some(inner)
    }

    /// A text, a text without regard to case, or a range of characters.
    fn literal(&mut self) -> Option<Expression> {
        let text = self.string()?;
        if self.take("..") {
            let mut bounds = [text.chars(), self.string()?.chars()].map(|text| text.collect::<Vec<_>>());
            let [[first], [last]] = bounds.each_mut().map(|bound| &bound[..]) else { return None };
            let (first, last) = (u32::from(*first), u32::from(*last));
            return (first <= last).then(|| Expression::Regex(format!("[\\u{{{first:x}}}-\\u{{{last:x}}}]")));
        }
        if self.rest.starts_with('i') {
            return Some(Expression::Regex(self.with_flags(&regex_syntax::escape(&text))?));
        }
        Some(Expression::Literal(text))
    }

    /// Text between quotes. Its escape sequences are those of JSON and `\'`, `\xHH`.
    fn string(&mut self) -> Option<String> {
        self.expect("\"")?;
        let text = self.up_to('"')?;
        let mut json = String::from("\"");
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match (character, character == '\\') {
                ('\t', _) => json.push_str("\\t"),
                (_, false) => json.push(character),
                _ => match characters.next()? {
                    'x' => json.push_str("\\u00"),
                    '\'' => json.push('\''),
                    escape => json.extend(['\\', escape]),
                },
            }
        }
        serde_json::from_str(&(json + "\"")).ok()
    }

    /// Text up to a character that is not escaped, on one line.
    fn up_to(&mut self, close: char) -> Option<&'t str> {
        let mut escaped = false;
        let end = self.rest.find(|character| {
            let ends = character == '\n' || !escaped && character == close;
            escaped = !escaped && character == '\\';
            ends
        })?;
        let text = &self.rest[..end];
        self.rest = self.rest[end..].strip_prefix(close)?;
        Some(text)
    }

    /// A regular expression with the flags that follow it.
    fn with_flags(&mut self, regex: &str) -> Option<String> {
        let flags = cursor::take_while(&mut self.rest, |c| c.is_ascii_lowercase());
        let regex = if flags.is_empty() { regex.to_owned() } else { format!("(?{flags}:{regex})") };
        // Python escapes the slash; a range of flags that Rust does not have is an error.
        let regex = regex.replace("\\/", "/");
        regex_syntax::parse(&regex).is_ok().then_some(regex)
    }

    /// Reads the operator after an element.
    fn repeated(&mut self, of: Expression) -> Option<Expression> {
        let (min, max) = match self.rest.chars().next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            _ => {
                let before = self.rest;
                self.skip_blanks(false);
                if !self.take("~") {
                    self.rest = before;
                    return Some(of);
                }
                let min = self.number()?;
                let max = if self.take("..") { self.number()? } else { min };
                return (min <= max).then(|| Expression::Repeat { of: Box::new(of), min, max: Some(max) });
            }
        };
        self.rest = &self.rest[1..];
        Some(Expression::Repeat { of: Box::new(of), min, max })
    }

    fn number(&mut self) -> Option<u32> {
        self.skip_blanks(false);
        let number = cursor::take_while(&mut self.rest, |c| c.is_ascii_digit());
        number.parse().ok().filter(|number| *number <= MAX_REPEAT)
    }

    fn name(&mut self) -> Option<&'t str> {
        let name = cursor::take_while(&mut self.rest, |c| c.is_ascii_alphanumeric() || c == '_');
        (!name.is_empty()).then_some(name)
    }

    fn skipped_name(&mut self) -> Option<&'t str> {
        self.skip_blanks(false);
        self.name()
    }

    fn keyword(&mut self, word: &str) -> Option<()> {
        (self.skipped_name()? == word).then_some(())?;
        self.skip_blanks(false);
        Some(())
    }

    fn mention(&mut self, name: &'t str) -> usize {
        let rules = &mut self.rules;
        *self.indexes.entry(name).or_insert_with(|| {
            rules.push(None);
            rules.len() - 1
        })
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    fn take(&mut self, text: &str) -> bool {
        cursor::take(&mut self.rest, text)
    }

    fn skip_blanks(&mut self, lines: bool) {
        cursor::skip_blanks(&mut self.rest, lines, &["//", "#"]);
    }
}

fn common(name: &str) -> Option<Expression> {
    let regex = COMMON.iter().find(|(known, _)| *known == name).map(|(_, regex)| *regex);
    regex.map(|regex| Expression::Regex(regex.to_owned()))
}
