//! Which tokens merge: listed in the file, or found in the vocabulary.

use super::vocabulary::{TokenType, Vocabulary};
use crate::{GgufMetadata, Result, TokenId};

pub(super) const MERGES: &str = "tokenizer.ggml.merges";
/// Longest token, in characters, that is taken apart to find what it merges from. Real ones have some dozens; the search takes
/// the square of it.
const MAX_PIECE_CHARS: usize = 512;

/// Pairs of tokens, those that merge first in front.
pub(super) type Merges = Vec<(String, String)>;

/// The merges that a file lists.
///
/// # Errors
/// When it lists none, or one is no pair of tokens whose texts joined are a token.
pub(super) fn listed(metadata: &GgufMetadata, vocabulary: &Vocabulary) -> Result<Merges> {
    let lines = metadata.required(MERGES, GgufMetadata::strings)?;
    let mut merges = Vec::with_capacity(lines.len());
    let mut joined = String::new();
    for (rank, line) in lines.enumerate() {
        let line = line?;
        let pair = split(line).filter(|(left, right)| {
            joined.clear();
            joined.extend([*left, *right]);
            [left, right, joined.as_str()].iter().all(|text| vocabulary.id(text).is_some())
        });
        let (left, right) = pair.ok_or_else(|| {
            let key = format!("{MERGES}[{rank}]");
            metadata.invalid(
                &key,
                format!("{line:?}"),
                "two tokens, parted by a blank, that make a third one",
            )
        })?;
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}

/// Both parts of a line. A blank that is its first character belongs to the first part.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let first = line.chars().next()?.len_utf8();
    let blank = first + line[first..].find(' ')?;
    Some((&line[..blank], &line[blank + 1..])).filter(|(_, right)| !right.is_empty())
}

/// Which tokens come into being first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Those with the highest scores.
    Scores,
    /// Those with the lowest ids.
    Ids,
}

/// The merges that the vocabulary implies: every way in which a token is two others, as transformers finds them
/// (`generate_merges` in `tokenization_utils_base.py`).
///
/// # Errors
/// When a token is too long to be taken apart.
pub(super) fn implied(metadata: &GgufMetadata, vocabulary: &Vocabulary, order: Order) -> Result<Merges> {
    let mut found: Vec<Found> = Vec::new();
    for (id, token) in vocabulary.used() {
        let ends: Vec<usize> = token.text.char_indices().map(|(at, _)| at).skip(1).collect();
        if ends.len() >= MAX_PIECE_CHARS {
            if token.ty == TokenType::Normal {
                let key = format!("tokenizer.ggml.tokens[{id}]");
                let expected = format!("at most {MAX_PIECE_CHARS}");
                return Err(metadata.invalid(&key, format!("{} characters", ends.len() + 1), expected));
            }
            continue; // It is found as a whole.
        }
        let first = found.len();
        for (left_chars, at) in (1..).zip(ends) {
            let (left, right) = token.text.split_at(at);
            if let (Some(left), Some(right)) = (vocabulary.id(left), vocabulary.id(right)) {
                found.push(Found { merged: id, left_chars, left, right });
            }
        }
        found[first..].sort_by_key(|found| (found.left, found.right));
    }
    let score = |id: TokenId| vocabulary.scores.as_ref().map_or(0.0, |scores| scores[id as usize]);
    found.sort_by(|a, b| match order {
        // Parts of unlike tokens with the same score: the longer left part, then the longer right part.
        Order::Scores => score(b.merged)
            .total_cmp(&score(a.merged))
            .then(b.left_chars.cmp(&a.left_chars))
            .then_with(|| b.right_chars(vocabulary).cmp(&a.right_chars(vocabulary))),
        Order::Ids => a.merged.cmp(&b.merged).then(b.left_chars.cmp(&a.left_chars)),
    });
    let text = |id: TokenId| vocabulary.token(id).text.clone();
    Ok(found.into_iter().map(|found| (text(found.left), text(found.right))).collect())
}

/// A token that is two others.
struct Found {
    merged: TokenId,
    left_chars: usize,
    left: TokenId,
    right: TokenId,
}

impl Found {
    fn right_chars(&self, vocabulary: &Vocabulary) -> usize {
        vocabulary.token(self.right).text.chars().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_two_parts() {
        assert_eq!(split("a b"), Some(("a", "b")));
        assert_eq!(split("é b c"), Some(("é", "b c")));
        assert_eq!(split("  b"), Some((" ", "b")));
        for line in ["", " ", "a", "ab ", " b", "é"] {
            assert_eq!(split(line), None, "{line:?}");
        }
    }
}
