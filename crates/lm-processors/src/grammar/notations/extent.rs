//! Characters that expressions without recursion begin with and consist of.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

use super::expression::Expression;

/// Extent of an expression's matches.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    /// First characters.
    first: ClassUnicode,
    /// Characters at any place.
    all: ClassUnicode,
    is_nullable: bool,
    /// True if one match may begin another, longer one.
    is_open: bool,
}

/// Extents of the rules in `order`; `None` for the others.
pub(super) fn extents(rules: &[Expression], order: &[usize]) -> Vec<Option<Extent>> {
    let mut extents = vec![None; rules.len()];
    for &rule in order {
        extents[rule] = Some(Extent::of(&rules[rule], &extents));
    }
    extents
}

impl Extent {
    /// Extent of an expression whose rules have extents.
    pub fn of(expression: &Expression, rules: &[Option<Self>]) -> Self {
        let of = |part: &Expression| Self::of(part, rules);
        match expression {
            Expression::Literal(text) => Self::literal(text),
            Expression::Regex(regex) => Self::characters(class(regex)),
            Expression::Rule(rule) => rules[*rule].clone().unwrap_or_else(|| Self::literal("")),
            Expression::Sequence(parts) => parts.iter().map(of).fold(Self::literal(""), Self::then),
            Expression::Alternatives(parts) => {
                let mut either = parts.iter().map(of).reduce(Self::or).unwrap_or_else(|| Self::literal(""));
                either.is_open |= parts.iter().any(|part| !matches!(part, Expression::Regex(_)));
                either
            }
            Expression::Repeat { of: part, min, .. } => {
                let part = of(part);
                Self { is_nullable: part.is_nullable || *min == 0, is_open: true, ..part }
            }
        }
    }

    fn literal(text: &str) -> Self {
        let class = |text: &str| ClassUnicode::new(text.chars().map(|c| ClassUnicodeRange::new(c, c)));
        let first = text.chars().next().map(String::from).unwrap_or_default();
        Self { first: class(&first), all: class(text), is_nullable: text.is_empty(), is_open: false }
    }

    fn characters(class: ClassUnicode) -> Self {
        Self { first: class.clone(), all: class, is_nullable: false, is_open: false }
    }

    fn then(mut self, next: Self) -> Self {
        if self.is_nullable {
            self.first.union(&next.first);
        }
        self.all.union(&next.all);
        let is_open = self.is_open || next.is_open;
        Self { is_nullable: self.is_nullable && next.is_nullable, is_open, ..self }
    }

    fn or(mut self, other: Self) -> Self {
        self.first.union(&other.first);
        self.all.union(&other.all);
        let is_open = self.is_open || other.is_open;
        Self { is_nullable: self.is_nullable || other.is_nullable, is_open, ..self }
    }
}

/// Maximum number of parts that may all be empty before one that begins with a given character.
const LOOKAHEAD: usize = 32;

/// Number of first parts of a sequence that have to be one terminal: after each but the last of them, one
/// that is open could take the first characters of those that follow. It is 1 for a part without an extent.
pub(super) fn first_group(parts: &[Option<Extent>]) -> usize {
    let mut open = ClassUnicode::empty();
    for (index, part) in parts.iter().enumerate() {
        let Some(part) = part else { return index.max(1) };
        if index > 0 && !meets(&open, &parts[index..]) {
            return index;
        }
        if !part.is_nullable {
            open = ClassUnicode::empty();
        }
        if part.is_open {
            open.union(&part.all);
        }
    }
    parts.len()
}

/// Returns true if the parts can begin with one of these characters.
fn meets(characters: &ClassUnicode, parts: &[Option<Extent>]) -> bool {
    for part in parts.iter().take(LOOKAHEAD).flatten() {
        let mut met = part.first.clone();
        met.intersect(characters);
        if !met.ranges().is_empty() {
            return true;
        }
        if !part.is_nullable {
            return false;
        }
    }
    false
}

/// Characters of a class.
fn class(regex: &str) -> ClassUnicode {
    let all = || ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
    match regex_syntax::parse(regex).map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => class,
        Ok(HirKind::Literal(text)) => match std::str::from_utf8(&text.0) {
            Ok(text) => ClassUnicode::new(text.chars().map(|c| ClassUnicodeRange::new(c, c))),
            Err(_) => all(),
        },
        _ => all(),
    }
}
