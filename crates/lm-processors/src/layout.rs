//! Whitespace of grammars.

/// Whitespace that a grammar accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// The family's own, byte for byte: layout is forced, and no tokens are spent on blanks. For decoding.
    #[default]
    Exact,
    /// Any that the family's parser accepts, with the keys of a call in any order. For validating texts.
    Any,
}
