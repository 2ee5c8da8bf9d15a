//! Lark text of parsed rules.

use super::expression::{Expression, regular_order};
use super::extent::{self, Extent, extents};
use crate::grammar::Grammar;
use crate::grammar::lark::{Lark, literal, one_of, sequence};

/// Writes rules, the first of which is the start rule.
pub(super) fn lark(rules: &[Expression]) -> Grammar {
    let mut lark = Lark::default();
    let order = regular_order(rules);
    let mut names = vec![None; rules.len()];
    for &rule in &order {
        names[rule] = Some(lark.terminal(terminal(&rules[rule], &names)));
    }
    let recursive: Vec<usize> = (0..rules.len()).filter(|rule| names[*rule].is_none()).collect();
    let extents = extents(rules, &order);
    for &rule in &recursive {
        names[rule] = Some(lark.reserve("r"));
    }
    for &rule in &recursive {
        let mut writer = Writer { lark: &mut lark, names: &names, extents: &extents };
        let body = writer.rule(&rules[rule]);
        lark.define_reserved(name(&names, rule), &body);
    }
    let start = name(&names, 0).to_owned();
    lark.finish(&start)
}

fn name(names: &[Option<String>], rule: usize) -> &str {
    names[rule].as_deref().unwrap_or_default()
}

/// Terminal expression of an expression without recursion.
fn terminal(expression: &Expression, names: &[Option<String>]) -> String {
    write(expression, &mut |part| terminal(part, names), names)
}

/// Text of an expression, whose parts `part` writes.
fn write(
    expression: &Expression,
    part: &mut dyn FnMut(&Expression) -> String,
    names: &[Option<String>],
) -> String {
    match expression {
        Expression::Literal(text) => literal(text),
        Expression::Regex(class) => format!("/{class}/"),
        Expression::Rule(rule) => name(names, *rule).to_owned(),
        Expression::Sequence(parts) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("({})", sequence(parts.iter().map(String::as_str)))
        }
        Expression::Alternatives(parts) => one_of(&parts.iter().map(part).collect::<Vec<_>>()),
        Expression::Repeat { of, min, max } => format!("({}){}", part(of), operator(*min, *max)),
    }
}

fn operator(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// Writer of recursive rules: their parts without recursion become terminals.
struct Writer<'w> {
    lark: &'w mut Lark,
    names: &'w [Option<String>],
    /// Extents of the rules without recursion.
    extents: &'w [Option<Extent>],
}

impl Writer<'_> {
    fn rule(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Rule(rule) => name(self.names, *rule).to_owned(),
            Expression::Sequence(parts) => self.sequence(parts),
            _ if self.is_regular(expression) => self.terminal(expression),
            _ => {
                let names = self.names;
                write(expression, &mut |part| self.rule(part), names)
            }
        }
    }

    /// Parts one after another; those that could take each other's characters as one terminal.
    fn sequence(&mut self, parts: &[Expression]) -> String {
        let extent = |part| self.is_regular(part).then(|| Extent::of(part, self.extents));
        let extents: Vec<Option<Extent>> = parts.iter().map(extent).collect();
        let (mut written, mut begin) = (Vec::new(), 0);
        while begin < parts.len() {
            let end = begin + extent::first_group(&extents[begin..]);
            written.push(match &parts[begin..end] {
                [part] => self.rule(part),
                group => self.grouped(group),
            });
            begin = end;
        }
        format!("({})", sequence(written.iter().map(String::as_str)))
    }

    fn is_regular(&self, expression: &Expression) -> bool {
        expression.rules().iter().all(|rule| self.extents[*rule].is_some())
    }

    fn terminal(&mut self, expression: &Expression) -> String {
        let body = terminal(expression, self.names);
        self.lark.terminal(body)
    }

    fn grouped(&mut self, parts: &[Expression]) -> String {
        let bodies: Vec<String> = parts.iter().map(|part| terminal(part, self.names)).collect();
        self.lark.terminal(bodies.join(" "))
    }
}
