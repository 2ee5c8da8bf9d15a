//! Texts with placeholders.

use super::PromptValues;
use crate::error::{Error, Result};

/// A text with placeholders such as `{input}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptText(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

impl PromptText {
    /// Creates the text that is this placeholder alone.
    pub fn variable(name: &str) -> Self {
        Self(vec![Piece::Variable(name.to_owned())])
    }

    /// Parses a text in the format of Python's f-strings: `{name}` is a placeholder, `{{` and `}}` are
    /// braces.
    ///
    /// # Errors
    /// [`Error::InvalidPrompt`] for a brace that is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |reason| Error::InvalidPrompt { text: text.to_owned(), reason };
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain += &rest[..at];
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{") {
                (plain, rest) = (plain + "{", after);
            } else if let Some(after) = rest.strip_prefix("}}") {
                (plain, rest) = (plain + "}", after);
            } else {
                let inner = rest.strip_prefix('{').ok_or_else(|| invalid("has a `}` without a `{`"))?;
                let (name, after) =
                    inner.split_once('}').ok_or_else(|| invalid("has a `{` without a `}`"))?;
                let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if !is_name {
                    return Err(invalid("has braces around what is no name: write `{{` for a brace"));
                }
                pieces.extend([Piece::Text(std::mem::take(&mut plain)), Piece::Variable(name.to_owned())]);
                rest = after;
            }
        }
        pieces.push(Piece::Text(plain + rest));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Self(pieces))
    }

    /// Names of the placeholders, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Variable(name) => Some(name.as_str()),
        })
    }

    /// Inserts the known values; the other placeholders remain.
    pub fn bind(&self, values: &PromptValues) -> Self {
        let bound = |piece: &Piece| match piece {
            Piece::Variable(name) => {
                values.text_of(name).map_or_else(|| piece.clone(), |text| Piece::Text(text.to_owned()))
            }
            Piece::Text(_) => piece.clone(),
        };
        Self(self.0.iter().map(bound).collect())
    }

    /// Returns the text without placeholders.
    ///
    /// # Errors
    /// [`Error::MissingPromptValue`] for a placeholder.
    pub fn finish(&self) -> Result<String> {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => Ok(text.clone()),
            Piece::Variable(name) => Err(Error::MissingPromptValue { name: name.clone() }),
        };
        self.0.iter().map(text).collect()
    }
}
