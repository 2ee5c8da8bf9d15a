//! Tokens of the lexer.

/// A token and its first line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Text outside of tags.
    Data(String),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    Text(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

/// Operators, longer ones before their prefixes.
pub(super) const OPERATORS: &[&str] = &[
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

impl Kind {
    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self, Kind::Name(found) if found == name)
    }

    pub(super) fn is(&self, operator: &str) -> bool {
        matches!(self, Kind::Operator(found) if *found == operator)
    }

    /// Name in error messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Kind::Data(_) => "text".to_owned(),
            Kind::VariableBegin => "{{".to_owned(),
            Kind::VariableEnd => "}}".to_owned(),
            Kind::BlockBegin => "{%".to_owned(),
            Kind::BlockEnd => "%}".to_owned(),
            Kind::Name(name) => name.clone(),
            Kind::Text(_) => "a string".to_owned(),
            Kind::Int(_) | Kind::Float(_) => "a number".to_owned(),
            Kind::Operator(operator) => (*operator).to_owned(),
            Kind::End => "the end of the template".to_owned(),
        }
    }
}
