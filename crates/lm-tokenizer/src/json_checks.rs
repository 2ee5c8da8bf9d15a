//! Checks of a `tokenizer.json` before the library reads it, where the library would panic, or use unbounded
//! time or memory.

use std::borrow::Cow;
use std::fmt;

use lm_formats::Error as FormatError;
use lm_formats::file_names::TOKENIZER as TOKENIZER_FILE;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::steps;
use crate::{Error, Result};

/// Parts of the file that are checked.
#[derive(Deserialize)]
pub(crate) struct Head {
    pub(crate) decoder: Option<Value>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    post_processor: Option<Value>,
    #[serde(default)]
    model: Model,
}

#[derive(Default, Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    continuing_subword_prefix: Option<String>,
    /// BPE dropout: fraction of merges that are skipped at random.
    dropout: Option<f64>,
    #[serde(default)]
    vocab: Vocabulary,
    #[serde(default)]
    merges: Pairs,
}

impl Head {
    /// Reads and checks these parts.
    ///
    /// # Errors
    /// - [`lm_formats::Error::Json`] for invalid JSON
    /// - [`lm_formats::Error::InvalidValue`] for merges with an empty part, or longer than any token
    /// - [`Error::Unsupported`] for subword prefixes of other models than WordPiece, for BPE dropout,
    ///   and for steps that expand a text too much
    pub(crate) fn read(json: &[u8]) -> Result<Self> {
        let head: Self = serde_json::from_slice(json)
            .map_err(|source| FormatError::Json { file: TOKENIZER_FILE.into(), source })?;
        for (part, step) in [
            ("decoder", &head.decoder),
            ("normalizer", &head.normalizer),
            ("pre_tokenizer", &head.pre_tokenizer),
            ("post_processor", &head.post_processor),
        ] {
            step.iter().try_for_each(|step| steps::check(part, step))?;
        }
        let Model { kind, continuing_subword_prefix, dropout, vocab, merges } = &head.model;
        // Its decoder removes the prefix.
        let has_prefix = kind.as_deref() == Some("WordPiece");
        if let Some(dropout) = dropout.filter(|&dropout| dropout != 0.0) {
            return Err(Error::Unsupported {
                part: "model.dropout",
                value: dropout.to_string(),
                known: "none",
            });
        }
        if let Some(prefix) =
            continuing_subword_prefix.as_ref().filter(|prefix| !prefix.is_empty() && !has_prefix)
        {
            return Err(Error::Unsupported {
                part: "model.continuing_subword_prefix",
                value: format!("{prefix:?}"),
                known: "none",
            });
        }
        let invalid_merge = |value: String, expected: String| {
            let (file, key) = (TOKENIZER_FILE.to_owned(), "model.merges".to_owned());
            Err(FormatError::InvalidValue { file, key, value, expected }.into())
        };
        if merges.any_empty {
            return invalid_merge("a pair with an empty part".into(), "pairs of tokens with text".into());
        }
        if vocab.longest_piece > MAX_PIECE_BYTES {
            return Err(FormatError::InvalidValue {
                file: TOKENIZER_FILE.into(),
                key: "model.vocab".into(),
                value: format!("a piece of {} bytes", vocab.longest_piece),
                expected: format!("{MAX_PIECE_BYTES} bytes at most"),
            }
            .into());
        }
        if merges.longest > vocab.longest_key {
            let longest = vocab.longest_key;
            let expected = format!("pairs that form a token of at most {longest} bytes");
            return invalid_merge(format!("a pair of {} bytes", merges.longest), expected);
        }
        Ok(head)
    }
}

/// Maximum bytes of a scored piece. The library recurses over a chain of as many nodes; a stack overflow
/// would end the process. SentencePiece learns pieces of 16 characters.
const MAX_PIECE_BYTES: usize = 1024;

/// Vocabulary: an object of tokens, or a list of pieces with scores.
#[derive(Clone, Copy, Default)]
struct Vocabulary {
    /// Bytes of the longest key of an object; 0 for anything else.
    longest_key: usize,
    /// Bytes of the longest piece of a list; 0 for anything else.
    longest_piece: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Scored(String, IgnoredAny),
    Other(IgnoredAny),
}

/// List of merges: each a list of two strings, or a string with a space between them.
#[derive(Clone, Copy, Default)]
struct Pairs {
    /// Bytes of the longest pair.
    longest: usize,
    /// True if a pair has an empty part.
    any_empty: bool,
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Vocabulary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vocabulary: an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Vocabulary, A::Error> {
        let mut longest = 0;
        while let Some((key, _)) = map.next_entry::<Cow<'de, str>, IgnoredAny>()? {
            longest = longest.max(key.len());
        }
        Ok(Vocabulary { longest_key: longest, longest_piece: 0 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Vocabulary, A::Error> {
        let mut longest = 0;
        while let Some(piece) = seq.next_element()? {
            if let Piece::Scored(text, _) = piece {
                longest = longest.max(text.len());
            }
        }
        Ok(Vocabulary { longest_key: 0, longest_piece: longest })
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let pairs = Vec::<Pair>::deserialize(deserializer)?;
        let longest = pairs.iter().map(Pair::bytes).max().unwrap_or(0);
        Ok(Self { longest, any_empty: pairs.iter().any(Pair::has_empty_part) })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Pair {
    Parts(String, String),
    Line(String),
}

impl Pair {
    fn has_empty_part(&self) -> bool {
        let (left, right) = match self {
            Self::Parts(left, right) => (left.as_str(), right.as_str()),
            Self::Line(line) => line.split_once(' ').unwrap_or((line, line)),
        };
        left.is_empty() || right.is_empty()
    }

    /// Length of both parts together.
    fn bytes(&self) -> usize {
        match self {
            Self::Parts(left, right) => left.len() + right.len(),
            Self::Line(line) if line.starts_with("#version") => 0, // Header of a list of merges.
            Self::Line(line) => line.len().saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_longer_than_any_token_are_rejected() {
        for (merges, fits) in [
            (r#"["a b", "ab c"]"#, true),
            (r#"[["a", "b"], ["ab", "c"]]"#, true),
            (r#"[["ab", "cd"]]"#, false),
            (r#"["ab cd"]"#, false),
            (r#"[]"#, true),
        ] {
            let json = format!(
                r#"{{"decoder": null, "model": {{"vocab": {{"abc": 0, "a": 1}}, "merges": {merges}}}}}"#
            );
            let error = Head::read(json.as_bytes()).err();
            assert_eq!(error.is_none(), fits, "{merges}");
            assert!(error.is_none_or(|error| error.to_string().contains("model.merges")), "{merges}");
        }
    }

    #[test]
    fn prefixes_of_subwords_are_rejected() {
        let read = |prefix: &str| {
            Head::read(format!(r#"{{"model": {{"continuing_subword_prefix": {prefix}}}}}"#).as_bytes())
        };
        assert!(read("null").is_ok() && read(r#""""#).is_ok());
        assert!(matches!(read(r#""@@""#), Err(Error::Unsupported { .. })));
        let word_piece = br###"{"model": {"type": "WordPiece", "continuing_subword_prefix": "##"}}"###;
        assert!(Head::read(word_piece).is_ok());
    }

    #[test]
    fn vocabularies_of_other_models_are_skipped() {
        for model in [r#"{"vocab": [["a", -1.5]]}"#, r#"{"type": "WordLevel", "vocab": {}}"#, "{}"] {
            assert!(Head::read(format!(r#"{{"model": {model}}}"#).as_bytes()).is_ok(), "{model}");
        }
    }
}
