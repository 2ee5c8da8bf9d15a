//! Exact bytes of each id, for any tokenizer format.

use std::collections::HashMap;

use lm_formats::Error as FormatError;
use lm_formats::file_names::TOKENIZER as TOKENIZER_FILE;
use serde::Deserialize;

use crate::{Error, Result, TokenId, TokenKind};

/// Maximum number of ids of a tokenizer: beyond any real one, small enough to allocate.
pub(crate) const MAX_IDS: usize = 1 << 24;

/// Maximum bytes of a token, and of all tokens.
const MAX_TOKEN_BYTES: usize = 1 << 16;
const MAX_BYTES: usize = 1 << 30;

/// Bytes and kind of every id, in one buffer.
#[derive(Debug)]
pub(crate) struct TokenTable {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// Leading spaces that decoding drops from a text (SentencePiece adds one).
    pub(crate) leading_spaces: usize,
}

impl TokenTable {
    /// Builds the table from the library's view of the vocabulary, and `duplicates`: ids that the library
    /// lacks, each with the id of the same text.
    pub(crate) fn new(
        spelling: &Spelling,
        inner: &tokenizers::Tokenizer,
        duplicates: &[(TokenId, TokenId)],
    ) -> Result<Self> {
        let added = inner.get_added_tokens_decoder();
        let mut tokens: Vec<(TokenId, String)> =
            inner.get_vocab(false).into_iter().map(|(text, id)| (id, text)).collect();
        tokens.retain(|(id, _)| !added.contains_key(id));
        let mut table = HashMap::with_capacity(tokens.len() + added.len());
        let mut budget = ByteBudget(MAX_BYTES);
        for (id, text) in tokens {
            let bytes = budget.take(&text, |text| spelling.bytes(text))?;
            if table.insert(id, (bytes, TokenKind::Text)).is_some() {
                return Err(FormatError::InvalidValue {
                    file: TOKENIZER_FILE.into(),
                    key: "model.vocab".into(),
                    value: format!("{text:?} with id {id}"),
                    expected: "an id of its own".into(),
                }
                .into());
            }
        }
        for (id, token) in added {
            let kind = if token.special { TokenKind::Special } else { TokenKind::Added };
            table.insert(id, (budget.take(&token.content, |text| spelling.added_bytes(text))?, kind));
        }
        // The library has the last of several tokens with the same text, so the loop runs backwards.
        for (id, like) in duplicates.iter().rev() {
            if let Some((bytes, kind)) = table.get(like).cloned() {
                budget.take_bytes(bytes.len())?;
                table.insert(*id, (bytes, kind));
            }
        }
        Self::collect(table, spelling.leading_spaces())
    }

    fn collect(mut tokens: HashMap<TokenId, (Vec<u8>, TokenKind)>, leading_spaces: usize) -> Result<Self> {
        let len = tokens.keys().max().map_or(0, |id| *id as usize + 1);
        if len > MAX_IDS {
            return Err(Error::Unsupported {
                part: "the highest id",
                value: (len - 1).to_string(),
                known: "ids below 16777216",
            });
        }
        let mut table = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(len),
            kinds: vec![TokenKind::Text; len],
            leading_spaces,
        };
        for id in 0..len {
            if let Some((bytes, kind)) = tokens.remove(&(id as TokenId)) {
                table.bytes.extend(bytes);
                table.kinds[id] = kind;
            }
            table.ends.push(table.bytes.len() as u32);
        }
        Ok(table)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self, id: TokenId) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }

    pub(crate) fn kind(&self, id: TokenId) -> TokenKind {
        self.kinds.get(id as usize).copied().unwrap_or(TokenKind::Text)
    }
}

/// Remaining byte budget of all tokens.
struct ByteBudget(usize);

impl ByteBudget {
    /// Returns the bytes that a token's text spells, and deducts them.
    fn take(&mut self, text: &str, spell: impl Fn(&str) -> Vec<u8>) -> Result<Vec<u8>> {
        let too_long = |value: String, known| Error::Unsupported { part: "a token", value, known };
        if text.len() > MAX_TOKEN_BYTES {
            return Err(too_long(format!("of {} bytes", text.len()), "65536 bytes at most"));
        }
        let bytes = spell(text);
        self.take_bytes(bytes.len())?;
        Ok(bytes)
    }

    fn take_bytes(&mut self, count: usize) -> Result<()> {
        let (value, known) = ("one too many".to_owned(), "1 GiB of all tokens together");
        let too_many = || Error::Unsupported { part: "a token", value, known };
        self.0 = self.0.checked_sub(count).ok_or_else(too_many)?;
        Ok(())
    }
}

/// Decoder steps whose effect on a single token is known.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum DecoderStep {
    ByteLevel {},
    Metaspace {
        replacement: char,
        #[serde(default)]
        prepend_scheme: Option<String>,
        #[serde(default)]
        add_prefix_space: Option<bool>,
    },
    Sequence {
        decoders: Vec<serde_json::Value>,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    ByteFallback {},
    Fuse {},
    WordPiece {
        prefix: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
}

#[derive(Deserialize)]
enum Pattern {
    String(String),
}

/// Mapping of a token's text in the vocabulary to its bytes.
pub(crate) enum Spelling {
    /// Byte-level: each character encodes one byte (GPT-2's table).
    ByteLevel(HashMap<char, u8>),
    /// Text with a mark (`▁`) in place of spaces, and `<0xNN>` for single bytes if the decoder has byte
    /// fallback.
    Metaspace { replace: Vec<(String, String)>, byte_fallback: bool, leading_spaces: usize },
    /// Words, each after a space, and their continuations, which start with this prefix. Spaces before
    /// punctuation stay, which the library's decoder can remove (`cleanup`).
    WordPiece { prefix: String },
}

const KNOWN_DECODERS: &str = "ByteLevel, Metaspace, WordPiece, or Replace (of a string), ByteFallback, Fuse and Strip (of leading spaces, \
     after Fuse) in a Sequence";

impl Spelling {
    /// Reads the decoder of a `tokenizer.json`.
    pub(crate) fn from_decoder(decoder: Option<serde_json::Value>) -> Result<Self> {
        let unsupported = |value: &serde_json::Value| Error::Unsupported {
            part: "decoder",
            value: value.to_string(),
            known: KNOWN_DECODERS,
        };
        let decoder = decoder.unwrap_or_default();
        let parse =
            |value: &serde_json::Value| DecoderStep::deserialize(value).map_err(|_| unsupported(value));
        let steps = match parse(&decoder)? {
            DecoderStep::Sequence { decoders } => decoders.iter().map(parse).collect::<Result<Vec<_>>>()?,
            step => vec![step],
        };
        Self::from_steps(steps).ok_or_else(|| unsupported(&decoder))
    }

    fn from_steps(mut steps: Vec<DecoderStep>) -> Option<Self> {
        if let [DecoderStep::WordPiece { prefix }] = &mut steps[..] {
            return Some(Self::WordPiece { prefix: std::mem::take(prefix) });
        }
        if steps.iter().any(|step| matches!(step, DecoderStep::ByteLevel {})) {
            let alone =
                steps.iter().all(|step| matches!(step, DecoderStep::ByteLevel {} | DecoderStep::Fuse {}));
            return alone.then(|| Self::ByteLevel(byte_of_char()));
        }
        let (mut replace, mut byte_fallback, mut leading_spaces, mut fused) = (Vec::new(), false, 0, false);
        for step in steps {
            match step {
                DecoderStep::Replace { pattern: Pattern::String(from), content } => {
                    replace.push((from, content))
                }
                DecoderStep::Metaspace { replacement, prepend_scheme, add_prefix_space } => {
                    replace.push((replacement.to_string(), " ".into()));
                    let prepends = match prepend_scheme.as_deref() {
                        Some(scheme) => scheme != "never",
                        None => add_prefix_space != Some(false),
                    };
                    leading_spaces = usize::from(prepends);
                }
                DecoderStep::ByteFallback {} => byte_fallback = true,
                DecoderStep::Fuse {} => fused = true,
                DecoderStep::Strip { content: ' ', start, stop: 0 } if fused => leading_spaces = start,
                DecoderStep::Strip { .. }
                | DecoderStep::Sequence { .. }
                | DecoderStep::ByteLevel {}
                | DecoderStep::WordPiece { .. } => return None,
            }
        }
        Some(Self::Metaspace { replace, byte_fallback, leading_spaces })
    }

    fn leading_spaces(&self) -> usize {
        match self {
            Self::ByteLevel(_) => 0,
            Self::WordPiece { .. } => 1,
            Self::Metaspace { leading_spaces, .. } => *leading_spaces,
        }
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel(byte_of) => {
                let bytes: Option<Vec<u8>> = text.chars().map(|c| byte_of.get(&c).copied()).collect();
                bytes.unwrap_or_else(|| text.into())
            }
            Self::WordPiece { prefix } => match text.strip_prefix(prefix.as_str()) {
                Some(rest) if !prefix.is_empty() => rest.into(),
                _ => format!(" {text}").into(),
            },
            Self::Metaspace { replace, byte_fallback, .. } => {
                match single_byte(text).filter(|_| *byte_fallback) {
                    Some(byte) => vec![byte],
                    None => {
                        replace.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)).into()
                    }
                }
            }
        }
    }

    /// Added tokens are stored as the text they match, never in the byte-level alphabet.
    fn added_bytes(&self, text: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel(_) | Self::WordPiece { .. } => text.into(),
            Self::Metaspace { .. } => self.bytes(text),
        }
    }
}

/// Byte of a `<0xNN>` token.
fn single_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let hex = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    hex.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Byte-level alphabet: printable Latin-1 maps to itself, every other byte to U+0100 and up, in order.
///
/// # Source
/// `bytes_to_unicode` of GPT-2 (openai/gpt-2, `src/encoder.py`).
pub(crate) fn byte_of_char() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut shifted = (0x100..).filter_map(char::from_u32);
    (0..=u8::MAX)
        .filter_map(|byte| Some((if printable(byte) { char::from(byte) } else { shifted.next()? }, byte)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_alphabet_is_gpt2s() {
        let byte_of = byte_of_char();
        assert_eq!(byte_of.len(), 256);
        for (c, byte) in [('a', b'a'), ('Ġ', b' '), ('Ċ', b'\n'), ('Ā', 0), ('ł', 0xA0), ('Ń', 0xAD)] {
            assert_eq!(byte_of[&c], byte, "{c}");
        }
    }

    #[test]
    fn byte_tokens_match_whole_in_either_case() {
        assert_eq!(single_byte("<0x0A>"), Some(b'\n'));
        assert_eq!(single_byte("<0xfF>"), Some(0xFF));
        for text in ["<0x0A", "<0xA>", "<0x0AB>", "0x0A", "<0x+A>"] {
            assert_eq!(single_byte(text), None, "{text}");
        }
    }

    #[test]
    fn words_start_with_a_space_and_continuations_do_not() {
        let decoder = r###"{"type": "WordPiece", "prefix": "##", "cleanup": true}"###;
        let spelling = Spelling::from_decoder(serde_json::from_str(decoder).unwrap()).ok().unwrap();
        assert_eq!(spelling.leading_spaces(), 1);
        for (token, bytes) in [("rain", " rain"), ("##ing", "ing"), ("##", ""), ("#", " #")] {
            assert_eq!(spelling.bytes(token), bytes.as_bytes(), "{token}");
        }
        assert_eq!(spelling.added_bytes("[CLS]"), b"[CLS]");
    }

    #[test]
    fn decoders_without_exact_bytes_are_rejected() {
        for decoder in [
            r#"null"#,
            r#"{"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"#,
            r#"{"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}"#,
        ] {
            let error = Spelling::from_decoder(serde_json::from_str(decoder).unwrap()).err().unwrap();
            assert!(matches!(error, Error::Unsupported { part: "decoder", .. }), "{error}");
        }
    }
}
