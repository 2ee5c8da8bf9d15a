//! Lark text of parsed rules.

use super::expression::{Expression, regular_order};
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
    let is_regular: Vec<bool> = names.iter().map(Option::is_some).collect();
    for &rule in &recursive {
        names[rule] = Some(lark.reserve("r"));
    }
    for &rule in &recursive {
        let body = Writer { lark: &mut lark, names: &names, is_regular: &is_regular }.rule(&rules[rule]);
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
        Expression::Literal(text) if text.is_empty() => "\"\"".to_owned(),
        Expression::Literal(text) => literal(text),
        Expression::Regex(class) => format!("/{class}/"),
        Expression::Rule(rule) => name(names, *rule).to_owned(),
        Expression::Sequence(parts) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("({})", sequence(parts.iter().map(String::as_str)))
        }
        Expression::Alternatives(parts) => one_of(&parts.iter().map(part).collect::<Vec<_>>()),
        Expression::Repeat { of, min, max } => part(of) + &operator(*min, *max),
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
    is_regular: &'w [bool],
}

impl Writer<'_> {
    fn rule(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Rule(rule) => name(self.names, *rule).to_owned(),
            Expression::Sequence(_) => self.parts(expression),
            _ if expression.rules().iter().all(|rule| self.is_regular[*rule]) => {
                let body = terminal(expression, self.names);
                self.lark.terminal(body)
            }
            _ => self.parts(expression),
        }
    }

    fn parts(&mut self, expression: &Expression) -> String {
        let names = self.names;
        write(expression, &mut |part| self.rule(part), names)
    }
}
