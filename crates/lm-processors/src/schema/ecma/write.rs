//! Writer of parsed expressions in the syntax of Rust's engines.

use super::PatternError;
use super::syntax::{ClassItem, GroupRef, Node, Pattern};

type Ranges = [(char, char)];

const DIGITS: &Ranges = &[('0', '9')];
const WORDS: &Ranges = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
/// White space by ECMA-262.
const SPACES: &Ranges = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
/// White space by ECMA-262, Unicode and Python alike.
const AGREED_SPACES: &Ranges = match SPACES.split_last() {
    Some((_, agreed)) => agreed,
    None => &[],
};
/// Further white space by Unicode or Python.
const OTHER_SPACES: &Ranges = &[('\u{1c}', '\u{1f}'), ('\u{85}', '\u{85}')];
/// Any character but a line terminator.
const NO_LINE_END: &str = r"[^\n\r\u{2028}\u{2029}]";
/// A word character before or after.
const WORD_BEFORE: [&str; 2] = ["(?<![0-9A-Z_a-z])", "(?<=[0-9A-Z_a-z])"];
const WORD_AFTER: [&str; 2] = ["(?![0-9A-Z_a-z])", "(?=[0-9A-Z_a-z])"];
/// Use of a written expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Grammar,
    Validation,
}

/// A capturing group that is closed.
struct Capture {
    /// Its number in the written expression, and the number of the empty group after it.
    number: usize,
    end: usize,
    /// Numbers of the alternatives and repetitions around it.
    scopes: Vec<usize>,
    is_in_loop: bool,
    is_in_look: bool,
}

pub(super) struct Writer<'p> {
    pattern: &'p Pattern,
    target: Target,
    out: String,
    captures: Vec<Option<Capture>>,
    /// Numbers of the alternatives and repetitions around the current part.
    scopes: Vec<usize>,
    next_scope: usize,
    /// Number of capturing groups written.
    groups: usize,
    loops: usize,
    /// Number of look-behinds and of negative look-aheads around the current part.
    looks: usize,
}

impl<'p> Writer<'p> {
    pub(super) fn new(pattern: &'p Pattern, target: Target) -> Self {
        Self {
            pattern,
            target,
            out: String::new(),
            captures: (0..pattern.groups).map(|_| None).collect(),
            scopes: Vec::new(),
            next_scope: 0,
            groups: 0,
            loops: 0,
            looks: 0,
        }
    }

    pub(super) fn written(mut self) -> Result<String, PatternError> {
        let pattern = self.pattern;
        self.node(&pattern.root)?;
        Ok(self.out)
    }

    fn node(&mut self, node: &Node) -> Result<(), PatternError> {
        match node {
            Node::Char(c) => self.char(*c),
            Node::Dot => self.out.push_str(NO_LINE_END),
            Node::Class { negated, items } => self.class(*negated, items),
            Node::Start => self.out.push('^'),
            Node::End => self.out.push('$'),
            Node::WordBoundary { .. } | Node::Look { .. } | Node::Reference(_)
                if self.target == Target::Grammar =>
            {
                return Err(PatternError::Unsupported { construct: "an assertion or reference" });
            }
            Node::WordBoundary { negated } => self.word_boundary(*negated),
            Node::Look { behind, negated, body } => self.look(*behind, *negated, body)?,
            Node::Group(number, body) => self.group(*number, body)?,
            Node::Reference(group) => self.reference(group)?,
            Node::Repeat { body, quantifier, is_loop } => {
                self.loops += usize::from(*is_loop);
                self.scoped(|writer| writer.node(body))?;
                self.loops -= usize::from(*is_loop);
                self.out.push_str(quantifier);
            }
            Node::Sequence(parts) => parts.iter().try_for_each(|part| self.node(part))?,
            Node::Alternatives(options) => {
                for (at, option) in options.iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { "|" });
                    self.scoped(|writer| writer.node(option))?;
                }
            }
        }
        Ok(())
    }

    fn scoped(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), PatternError>,
    ) -> Result<(), PatternError> {
        self.next_scope += 1;
        self.scopes.push(self.next_scope);
        write(self)?;
        self.scopes.pop();
        Ok(())
    }

    fn char(&mut self, c: char) {
        if c.is_alphanumeric() || " _-/,:;@%=<>\"'!".contains(c) {
            self.out.push(c);
        } else {
            self.out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        }
    }

    fn class(&mut self, negated: bool, items: &[ClassItem]) {
        if items.is_empty() {
            self.out.push_str(if negated { "(?s:.)" } else { r"[^\u{0}-\u{10ffff}]" });
            return;
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        for item in items {
            match item {
                ClassItem::Range(low, high) => self.range(*low, *high),
                ClassItem::Property(name) => self.out.push_str(name),
                ClassItem::Escape(kind) => {
                    let ranges = self.ranges(*kind, negated);
                    let ranges = if kind.is_lowercase() { ranges } else { complement(&ranges) };
                    ranges.into_iter().for_each(|(low, high)| self.range(low, high));
                }
            }
        }
        self.out.push(']');
    }

    /// Ranges of `\d`, `\w` or `\s`. A grammar uses the white space that leaves the fewer texts.
    fn ranges(&self, kind: char, negated: bool) -> Vec<(char, char)> {
        match (kind.to_ascii_lowercase(), self.target) {
            ('d', _) => DIGITS.to_vec(),
            ('w', _) => WORDS.to_vec(),
            (_, Target::Validation) => SPACES.to_vec(),
            (_, Target::Grammar) if kind.is_uppercase() != negated => {
                let mut all = [SPACES, OTHER_SPACES].concat();
                all.sort_unstable();
                all
            }
            (_, Target::Grammar) => AGREED_SPACES.to_vec(),
        }
    }

    /// Writes a range of a class.
    fn range(&mut self, low: char, high: char) {
        let ends = if low == high { vec![low] } else { vec![low, high] };
        let ends = ends.into_iter().map(|c| match c {
            c if c.is_alphanumeric() || c == '_' => c.to_string(),
            c => format!("\\u{{{:x}}}", u32::from(c)),
        });
        self.out.push_str(&ends.collect::<Vec<_>>().join("-"));
    }

    fn word_boundary(&mut self, negated: bool) {
        let sides = |before: usize, after: usize| [WORD_BEFORE[before], WORD_AFTER[after]].concat();
        let (one, other) = if negated { (sides(0, 0), sides(1, 1)) } else { (sides(0, 1), sides(1, 0)) };
        self.out.push_str(&format!("(?:{one}|{other})"));
    }

    fn look(&mut self, behind: bool, negated: bool, body: &Node) -> Result<(), PatternError> {
        let direction = if behind { "<" } else { "" };
        self.out.push_str(&format!("(?{direction}{}", if negated { '!' } else { '=' }));
        self.looks += usize::from(behind || negated);
        self.scoped(|writer| writer.node(body))?;
        self.looks -= usize::from(behind || negated);
        self.out.push(')');
        Ok(())
    }

    /// Writes a group. An empty group after a referenced one records whether that took part in the match.
    fn group(&mut self, at: Option<usize>, body: &Node) -> Result<(), PatternError> {
        let Some(at) =
            at.filter(|at| self.target == Target::Validation && self.pattern.referenced.contains(at))
        else {
            self.out.push_str("(?:");
            self.node(body)?;
            self.out.push(')');
            return Ok(());
        };
        self.groups += 1;
        let number = self.groups;
        self.out.push_str("(?:(");
        self.node(body)?;
        self.out.push_str(")())");
        self.groups += 1;
        self.captures[at] = Some(Capture {
            number,
            end: self.groups,
            scopes: self.scopes.clone(),
            is_in_loop: self.loops > 0,
            is_in_look: self.looks > 0,
        });
        Ok(())
    }

    /// Writes a back reference. A group that did not take part in the match matches the empty text; each
    /// repetition of a loop resets its groups, which the engine does not do.
    fn reference(&mut self, group: &GroupRef) -> Result<(), PatternError> {
        let unsupported = |construct| Err(PatternError::Unsupported { construct });
        if self.looks > 0 {
            return unsupported("a back reference in a look-behind or negative look-ahead");
        }
        match self.pattern.group(group).and_then(|at| self.captures[at].as_ref()) {
            // The group has not ended: it did not take part.
            None => self.out.push_str("(?:)"),
            Some(capture) if capture.is_in_look => {
                return unsupported("a back reference to a group of a look-behind or negative look-ahead");
            }
            Some(Capture { number, scopes, .. }) if self.scopes.starts_with(scopes) => {
                self.out.push_str(&format!("(?:\\{number})"));
            }
            Some(capture) if capture.is_in_loop => {
                return unsupported("a back reference to a group of a repetition that has ended");
            }
            Some(Capture { number, end, .. }) => {
                self.out.push_str(&format!("(?:\\{end}(?:\\{number})|(?!\\{end}))"));
            }
        }
        Ok(())
    }
}

/// The characters outside of sorted ranges, which may touch each other.
fn complement(ranges: &Ranges) -> Vec<(char, char)> {
    let code = |c: char| u32::from(c);
    let starts = std::iter::once(0).chain(ranges.iter().map(|(_, high)| code(*high) + 1));
    let ends = ranges.iter().map(|(low, _)| code(*low)).chain([code(char::MAX) + 1]);
    let between = starts.zip(ends).filter(|(start, end)| start < end);
    between.filter_map(|(start, end)| Some((char::from_u32(start)?, char::from_u32(end - 1)?))).collect()
}
