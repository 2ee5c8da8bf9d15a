//! BPE merges: listed in the file, or derived from the vocabulary.

use lm_formats::{GgufMetadata, Result};

use super::vocabulary::{TokenType, Vocabulary};
use crate::TokenId;

pub(super) const MERGES: &str = "tokenizer.ggml.merges";
/// Maximum length, in characters, of a token whose merges are derived. Real tokens have some dozens; the
/// search is quadratic in the length.
const MAX_PIECE_CHARS: usize = 512;

/// Token pairs, in the order of merging.
pub(super) type Merges = Vec<(String, String)>;

/// Reads the merges that a file lists.
///
/// # Errors
/// When it lists none, or one is not a pair of tokens whose concatenation is a token.
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

/// Splits a line into both parts. A leading space belongs to the first part.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let first = line.chars().next()?.len_utf8();
    let blank = first + line[first..].find(' ')?;
    Some((&line[..blank], &line[blank + 1..])).filter(|(_, right)| !right.is_empty())
}

/// Order in which tokens merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Highest score first.
    Scores,
    /// Lowest id first.
    Ids,
}

/// Derives the merges from the vocabulary: every split of a token into two others, as in transformers
/// (`generate_merges` in `tokenization_utils_base.py`).
///
/// # Errors
/// When a token is too long to be split.
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
            continue; // It is recognised as a whole.
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
        // Ties between different tokens: the longer left part first, then the longer right part.
        Order::Scores => score(b.merged)
            .total_cmp(&score(a.merged))
            .then(b.left_chars.cmp(&a.left_chars))
            .then_with(|| b.right_chars(vocabulary).cmp(&a.right_chars(vocabulary))),
        Order::Ids => a.merged.cmp(&b.merged).then(b.left_chars.cmp(&a.left_chars)),
    });
    let text = |id: TokenId| vocabulary.token(id).text.clone();
    Ok(found.into_iter().map(|found| (text(found.left), text(found.right))).collect())
}

/// A split of a token into two others.
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
    use lm_formats::{FileBytes, GgufEntries, GgufEntry, GgufFile, GgufHeader};

    use super::super::vocabulary::{SCORES, TOKENS};
    use super::*;

    /// A file's metadata and vocabulary: normal tokens with these scores.
    fn vocabulary<const N: usize>(tokens: [&str; N], scores: [f32; N]) -> (GgufMetadata, Vocabulary) {
        let mut entries = GgufEntries::default();
        entries.put(TOKENS, GgufEntry::Texts(tokens.map(str::to_owned).into()));
        entries.put(SCORES, GgufEntry::Floats(scores.into()));
        let header = GgufHeader::new(&entries, &[]).expect("there are no tensors");
        let file = GgufFile::read("test.gguf", FileBytes::Owned(header.bytes.into()));
        let metadata = file.expect("what is written can be read").metadata().clone();
        let vocabulary = Vocabulary::read(&metadata).expect("is valid");
        (metadata, vocabulary)
    }

    /// The lists are those of transformers' `generate_merges`.
    #[test]
    fn ties_prefer_longer_left_then_right_part() {
        let tokens = ["a", "b", "c", "d", "cd", "ab", "bcd", "abc", "abcd", "da"];
        let scores = [0.0, 0.0, 0.0, 0.0, -1.0, -1.0, -1.0, -1.0, -1.0, 0.0];
        let (metadata, vocabulary) = vocabulary(tokens, scores);
        for (order, expected) in [
            (Order::Scores, ["d a", "abc d", "ab cd", "ab c", "a bcd", "b cd", "c d", "a b"]),
            (Order::Ids, ["c d", "a b", "b cd", "ab c", "abc d", "ab cd", "a bcd", "d a"]),
        ] {
            let merges = implied(&metadata, &vocabulary, order).expect("all tokens are short");
            let lines: Vec<String> = merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
            assert_eq!(lines, expected, "{order:?}");
        }
    }

    #[test]
    fn line_has_two_parts() {
        assert_eq!(split("a b"), Some(("a", "b")));
        assert_eq!(split("é b c"), Some(("é", "b c")));
        assert_eq!(split("  b"), Some((" ", "b")));
        for line in ["", " ", "a", "ab ", " b", "é"] {
            assert_eq!(split(line), None, "{line:?}");
        }
    }
}
