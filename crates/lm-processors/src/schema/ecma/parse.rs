//! Parser.

use std::collections::{BTreeMap, BTreeSet};

use super::PatternError;
use super::syntax::{ClassItem, GroupRef, Node, Pattern};

/// Maximum depth of nested groups.
const MAX_DEPTH: usize = 100;

/// An escape sequence.
enum Escape {
    Char(char),
    Class(ClassItem),
    Node(Node),
}

/// Parses `pattern`.
pub(super) fn parsed(pattern: &str) -> Result<Pattern, PatternError> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut parser =
        Parser { chars: &chars, at: 0, depth: 0, groups: 0, names: BTreeMap::new(), references: Vec::new() };
    let root = parser.alternatives()?;
    if parser.at < chars.len() {
        return Err(parser.fault("the parenthesis closes no group"));
    }
    let Parser { groups, names, references, .. } = parser;
    let mut pattern = Pattern { root, groups, names, referenced: BTreeSet::new() };
    for (at, target) in references {
        let missing = PatternError::Syntax { at, reason: "no group has this number or name" };
        pattern.referenced.insert(pattern.group(&target).ok_or(missing)?);
    }
    Ok(pattern)
}

struct Parser<'p> {
    chars: &'p [char],
    at: usize,
    depth: usize,
    groups: usize,
    names: BTreeMap<String, usize>,
    references: Vec<(usize, GroupRef)>,
}

type Parsed<T> = Result<T, PatternError>;

impl Parser<'_> {
    fn fault(&self, reason: &'static str) -> PatternError {
        PatternError::Syntax { at: self.at, reason }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self, missing: &'static str) -> Parsed<char> {
        let c = self.peek().ok_or_else(|| self.fault(missing))?;
        self.at += 1;
        Ok(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(at, c)| self.chars.get(self.at + at) == Some(&c));
        self.at += if found { text.chars().count() } else { 0 };
        found
    }

    fn alternatives(&mut self) -> Parsed<Node> {
        let mut options = vec![self.sequence()?];
        while self.eat("|") {
            options.push(self.sequence()?);
        }
        Ok(if options.len() == 1 { options.remove(0) } else { Node::Alternatives(options) })
    }

    fn sequence(&mut self) -> Parsed<Node> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let body = self.atom()?;
            let start = self.at;
            let Some((quantifier, is_loop)) = self.quantifier()? else {
                parts.push(body);
                continue;
            };
            if matches!(body, Node::Start | Node::End | Node::WordBoundary { .. } | Node::Look { .. }) {
                return Err(PatternError::Syntax { at: start, reason: "an assertion cannot be repeated" });
            }
            parts.push(Node::Repeat { body: Box::new(body), quantifier, is_loop });
        }
        Ok(Node::Sequence(parts))
    }

    fn atom(&mut self) -> Parsed<Node> {
        if self.braces()?.is_some() || matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(self.fault("nothing to repeat"));
        }
        Ok(match self.next("the expression ends here")? {
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::Dot,
            '(' => return self.group(),
            '[' => return self.class(),
            '\\' => match self.escape()? {
                Escape::Char(c) => Node::Char(c),
                Escape::Class(item) => Node::Class { negated: false, items: vec![item] },
                Escape::Node(node) => node,
            },
            c => Node::Char(c),
        })
    }

    /// Reads a quantifier; also returns true if it allows more than one repetition.
    fn quantifier(&mut self) -> Parsed<Option<(String, bool)>> {
        let (mut text, is_loop) = if self.eat("*") {
            ("*".to_owned(), true)
        } else if self.eat("+") {
            ("+".to_owned(), true)
        } else if self.eat("?") {
            ("?".to_owned(), false)
        } else if let Some((text, is_loop)) = self.braces()? {
            self.at += text.len();
            (text, is_loop)
        } else {
            return Ok(None);
        };
        if self.eat("?") {
            text.push('?');
        }
        Ok(Some((text, is_loop)))
    }

    /// The quantifier in braces that begins here; `None` if a brace here is a literal.
    fn braces(&self) -> Parsed<Option<(String, bool)>> {
        let rest = &self.chars[self.at..];
        let Some(end) = rest.iter().position(|c| *c == '}').filter(|_| rest[0] == '{') else {
            return Ok(None);
        };
        let inner: String = rest[1..end].iter().collect();
        let (min, max) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_count = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if min.is_empty() || !is_count(min) || !is_count(max) {
            return Ok(None);
        }
        let number = |digits: &str| digits.parse().unwrap_or(u64::MAX);
        if !max.is_empty() && number(max) < number(min) {
            return Err(self.fault("the bounds of the repetition are out of order"));
        }
        Ok(Some((format!("{{{inner}}}"), max.is_empty() || number(max) > 1)))
    }

    fn group(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError::Unsupported { construct: "a group more than 100 deep" });
        }
        let look = |behind, negated| Some((behind, negated));
        let mut number = None;
        let look = match () {
            () if self.eat("?:") => None,
            () if self.eat("?=") => look(false, false),
            () if self.eat("?!") => look(false, true),
            () if self.eat("?<=") => look(true, false),
            () if self.eat("?<!") => look(true, true),
            () => {
                let name = if self.eat("?<") { Some(self.name()?) } else { None };
                if name.is_none() && self.eat("?") {
                    return Err(self.fault("no group begins with these characters"));
                }
                if name.is_some_and(|name| self.names.insert(name, self.groups).is_some()) {
                    return Err(self.fault("another group has this name"));
                }
                number = Some(self.groups);
                self.groups += 1;
                None
            }
        };
        let body = Box::new(self.alternatives()?);
        if !self.eat(")") {
            return Err(self.fault("a group is not closed"));
        }
        self.depth -= 1;
        Ok(match look {
            Some((behind, negated)) => Node::Look { behind, negated, body },
            None => Node::Group(number, body),
        })
    }

    /// Reads the rest of `<name>`.
    fn name(&mut self) -> Parsed<String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let mut name = String::new();
        loop {
            match self.next("a name is not closed")? {
                '>' if !name.is_empty() => return Ok(name),
                c if is_part(c) && !(name.is_empty() && c.is_numeric()) => name.push(c),
                _ => return Err(self.fault("not a name of a group")),
            }
        }
    }

    fn class(&mut self) -> Parsed<Node> {
        let negated = self.eat("^");
        let mut items = Vec::new();
        loop {
            let first = match self.next("a class is not closed")? {
                ']' => return Ok(Node::Class { negated, items }),
                c => self.class_item(c)?,
            };
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']');
            if !is_range {
                items.push(first);
                continue;
            }
            let start = self.at;
            self.at += 1;
            let c = self.next("a class is not closed")?;
            match (first, self.class_item(c)?) {
                (ClassItem::Range(low, _), ClassItem::Range(_, high)) if low <= high => {
                    items.push(ClassItem::Range(low, high));
                }
                (ClassItem::Range(..), ClassItem::Range(..)) => {
                    return Err(PatternError::Syntax { at: start, reason: "a range is out of order" });
                }
                // Next to a set, the hyphen is a literal.
                (first, last) => items.extend([first, ClassItem::Range('-', '-'), last]),
            }
        }
    }

    /// Reads an element of a class; a character is a range of one.
    fn class_item(&mut self, first: char) -> Parsed<ClassItem> {
        Ok(match first {
            '\\' if self.eat("b") => ClassItem::Range('\u{8}', '\u{8}'),
            '\\' => match self.escape()? {
                Escape::Char(c) => ClassItem::Range(c, c),
                Escape::Class(item) => item,
                Escape::Node(_) => return Err(self.fault("not an element of a class")),
            },
            c => ClassItem::Range(c, c),
        })
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self) -> Parsed<Escape> {
        let start = self.at;
        let c = match self.next("the expression ends in an escape")? {
            kind @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => return Ok(Escape::Class(ClassItem::Escape(kind))),
            kind @ ('p' | 'P') => return self.property(kind),
            kind @ ('b' | 'B') => return Ok(Escape::Node(Node::WordBoundary { negated: kind == 'B' })),
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'v' => '\u{b}',
            'f' => '\u{c}',
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            'c' => match self.next("a control character has no letter")? {
                letter if letter.is_ascii_alphabetic() => char::from(letter as u8 % 32),
                _ => return Err(self.fault("a control character has no letter")),
            },
            'x' => self.hex(2).and_then(|code| char::from_u32(code).ok_or(self.fault("no character")))?,
            'u' => self.unicode()?,
            'k' if self.eat("<") => {
                let name = GroupRef::Name(self.name()?);
                return Ok(self.reference(start, name));
            }
            digit @ '1'..='9' => {
                let mut number = digit as usize - '0' as usize;
                while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
                    number = number.saturating_mul(10).saturating_add(digit as usize);
                    self.at += 1;
                }
                return Ok(self.reference(start, GroupRef::Number(number)));
            }
            c if c.is_alphanumeric() => {
                return Err(self.fault("an escape of a letter or digit without a meaning"));
            }
            c => c,
        };
        Ok(Escape::Char(c))
    }

    fn reference(&mut self, at: usize, target: GroupRef) -> Escape {
        self.references.push((at, target.clone()));
        Escape::Node(Node::Reference(target))
    }

    /// Reads the rest of `\p{…}`.
    fn property(&mut self, kind: char) -> Parsed<Escape> {
        let unnamed = "a Unicode property has no name in braces";
        if !self.eat("{") {
            return Err(self.fault(unnamed));
        }
        let mut name = String::new();
        loop {
            match self.next(unnamed)? {
                '}' if !name.is_empty() => break,
                c if c.is_ascii_alphanumeric() || matches!(c, '_' | '=') => name.push(c),
                _ => return Err(self.fault(unnamed)),
            }
        }
        Ok(Escape::Class(ClassItem::Property(format!("\\{kind}{{{name}}}"))))
    }

    fn hex(&mut self, digits: usize) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.next("hexadecimal digits are missing")?.to_digit(16);
            code = code * 16 + digit.ok_or_else(|| self.fault("hexadecimal digits are missing"))?;
        }
        Ok(code)
    }

    /// Reads the rest of `\uHHHH`, a surrogate pair of those, or `\u{…}`.
    fn unicode(&mut self) -> Parsed<char> {
        let lone = PatternError::Unsupported { construct: "half a surrogate pair" };
        if self.eat("{") {
            let mut code: u32 = 0;
            loop {
                match self.next("an escape is not closed")? {
                    '}' => return char::from_u32(code).ok_or(self.fault("no character")),
                    c => {
                        let digit = c.to_digit(16).ok_or(self.fault("hexadecimal digits are missing"))?;
                        code = code.saturating_mul(16).saturating_add(digit);
                    }
                }
            }
        }
        let high = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or(lone);
        }
        if !self.eat("\\u") {
            return Err(lone);
        }
        let low = self.hex(4)?.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or(lone)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low).ok_or(lone)
    }
}
