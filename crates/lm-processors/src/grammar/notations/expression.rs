//! Bodies of rules as trees.

/// The body of a rule, or a part of it.
#[derive(Debug)]
pub(super) enum Expression {
    Literal(String),
    /// Text of a regular expression in Rust's syntax.
    Regex(String),
    /// The rule of this index.
    Rule(usize),
    Sequence(Vec<Self>),
    Alternatives(Vec<Self>),
    Repeat {
        of: Box<Self>,
        min: u32,
        max: Option<u32>,
    },
}

impl Expression {
    fn parts(&self) -> &[Self] {
        match self {
            Self::Sequence(parts) | Self::Alternatives(parts) => parts,
            Self::Repeat { of, .. } => std::slice::from_ref(of),
            Self::Literal(_) | Self::Regex(_) | Self::Rule(_) => &[],
        }
    }

    /// The rules that an expression refers to, with repetitions.
    pub(super) fn rules(&self) -> Vec<usize> {
        match self {
            Self::Rule(rule) => vec![*rule],
            _ => self.parts().iter().flat_map(Self::rules).collect(),
        }
    }
}

/// The rules that reach no recursion, each after those it refers to.
pub(super) fn regular_order(rules: &[Expression]) -> Vec<usize> {
    let mut dependents = vec![Vec::new(); rules.len()];
    let mut unresolved = vec![0; rules.len()];
    for (index, rule) in rules.iter().enumerate() {
        for part in rule.rules() {
            dependents[part].push(index);
            unresolved[index] += 1;
        }
    }
    let mut order: Vec<usize> = (0..rules.len()).filter(|rule| unresolved[*rule] == 0).collect();
    let mut next = 0;
    while let Some(&rule) = order.get(next) {
        next += 1;
        for &dependent in &dependents[rule] {
            unresolved[dependent] -= 1;
            if unresolved[dependent] == 0 {
                order.push(dependent);
            }
        }
    }
    order
}
