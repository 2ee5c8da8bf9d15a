/// Reduction of the hidden states of a text to one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    #[default]
    Mean,
    /// The last token.
    Last,
    /// The first token.
    Cls,
}
