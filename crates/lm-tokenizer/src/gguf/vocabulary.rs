//! Vocabulary of a GGUF file, validated.

use std::collections::HashMap;

use lm_formats::{Error, GgufMetadata, Result};

use crate::TokenId;
use crate::token_table::MAX_IDS;

pub(super) const TOKENS: &str = "tokenizer.ggml.tokens";
pub(super) const TYPES: &str = "tokenizer.ggml.token_type";
pub(super) const SCORES: &str = "tokenizer.ggml.scores";
/// Names of the special tokens in keys.
const SPECIAL_TOKENS: &[&str] =
    &["bos", "cls", "eom", "eos", "eot", "mask", "padding", "seperator", "separator", "unknown"];
/// Maximum bytes of all tokens' text; the largest real vocabularies have about 3 MB.
const MAX_TEXT_BYTES: usize = 256 << 20;

/// Type of a token: `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenType {
    /// Ordinary token of the model.
    Normal,
    /// Placeholder for text that the model cannot encode; also padding of some vocabularies.
    Unknown,
    /// Control token without text.
    Control,
    /// Text that is recognised before the model runs.
    UserDefined,
    /// Reserved id that no text encodes to.
    Unused,
    /// A single byte, `<0xNN>`.
    Byte,
}

impl TokenType {
    /// In the order of the format's ids, which start at 1.
    const ALL: [Self; 6] =
        [Self::Normal, Self::Unknown, Self::Control, Self::UserDefined, Self::Unused, Self::Byte];

    /// Id in files.
    pub(super) fn number(self) -> i32 {
        self as i32 + 1
    }

    /// Returns the type of an id; 0 (undefined) is ordinary text.
    fn of_number(number: i64) -> Option<Self> {
        let index = usize::try_from(number).ok()?.saturating_sub(1);
        Self::ALL.get(index).copied()
    }
}

/// Token of the file.
#[derive(Clone, Debug)]
pub(super) struct VocabularyToken {
    pub(super) text: String,
    pub(super) ty: TokenType,
}

/// Tokens of a file. If two have the same text, the text encodes to the later one; both decode to it.
#[derive(Debug)]
pub(super) struct Vocabulary {
    tokens: Vec<VocabularyToken>,
    /// Ids with the text of a later token, each with that token's id.
    pub(super) duplicates: Vec<(TokenId, TokenId)>,
    /// Score of each token, never NaN.
    pub(super) scores: Option<Vec<f32>>,
    ids: HashMap<String, TokenId>,
    /// Ids that the file names as the end of a reply or of a turn.
    pub(super) end_ids: Vec<TokenId>,
    pub(super) unknown_id: Option<TokenId>,
}

impl Vocabulary {
    /// Reads the tokens with their types and scores, and the named ids.
    pub(super) fn read(metadata: &GgufMetadata) -> Result<Self> {
        let texts = metadata.required(TOKENS, GgufMetadata::strings)?;
        let len = texts.len();
        if len == 0 || len > MAX_IDS {
            return Err(metadata.invalid(
                TOKENS,
                format!("a list of {len}"),
                format!("1 to {MAX_IDS} tokens"),
            ));
        }
        let types = match metadata.ints(TYPES)? {
            Some(types) => types,
            None => vec![i64::from(TokenType::Normal.number()); len],
        };
        let scores = metadata.floats(SCORES)?;
        for (key, got) in [(TYPES, Some(types.len())), (SCORES, scores.as_ref().map(Vec::len))] {
            if let Some(got) = got.filter(|got| *got != len) {
                return Err(metadata.invalid(
                    key,
                    format!("a list of {got}"),
                    format!("one for each of {len} tokens"),
                ));
            }
        }
        if let Some(id) = scores.iter().flatten().position(|score| score.is_nan()) {
            return Err(metadata.invalid(&format!("{SCORES}[{id}]"), "NaN", "a number"));
        }
        let mut vocabulary = Self {
            tokens: Vec::with_capacity(len),
            duplicates: Vec::new(),
            scores,
            ids: HashMap::with_capacity(len),
            end_ids: Vec::new(),
            unknown_id: None,
        };
        let mut bytes = 0;
        for (text, number) in texts.zip(types) {
            let text = text?;
            bytes += text.len();
            if bytes > MAX_TEXT_BYTES {
                let expected = format!("at most {MAX_TEXT_BYTES} bytes of text");
                return Err(metadata.invalid(TOKENS, "longer", expected));
            }
            vocabulary.push(metadata, text, number)?;
        }
        vocabulary.read_ids(metadata)?;
        vocabulary.warn(metadata)?;
        Ok(vocabulary)
    }

    /// Logs irregularities of the tokens, and their treatment.
    fn warn(&self, metadata: &GgufMetadata) -> Result<()> {
        let file = metadata.file();
        if let [(earlier, later), ..] = self.duplicates[..] {
            let (count, text) = (self.duplicates.len(), &self.token(later).text);
            tracing::warn!(
                file,
                count,
                text,
                earlier,
                later,
                "tokens are spelled alike: text becomes the last of them"
            );
        }
        match metadata.ints(TYPES)? {
            None => tracing::warn!(file, "{TYPES} is absent: all tokens are ordinary text"),
            Some(types) => {
                let count = types.iter().filter(|&&number| number == 0).count();
                if count > 0 {
                    tracing::warn!(file, count, "tokens have the undefined type 0: they are ordinary text");
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, metadata: &GgufMetadata, text: &str, number: i64) -> Result<()> {
        let id = self.tokens.len();
        let ty = TokenType::of_number(number).ok_or_else(|| Error::UnsupportedValue {
            file: metadata.file().to_owned(),
            key: format!("{TYPES}[{id}]"),
            value: number.to_string(),
            known:
                "0 (undefined), 1 (normal), 2 (unknown), 3 (control), 4 (user defined), 5 (unused), 6 (byte)"
                    .into(),
        })?;
        // Some vocabularies are padded with empty entries.
        let ty = if text.is_empty() { TokenType::Unused } else { ty };
        if ty != TokenType::Unused
            && let Some(earlier) = self.ids.insert(text.to_owned(), id as TokenId)
        {
            self.duplicates.push((earlier, id as TokenId));
        }
        self.tokens.push(VocabularyToken { text: text.to_owned(), ty });
        Ok(())
    }

    fn read_ids(&mut self, metadata: &GgufMetadata) -> Result<()> {
        for name in ["eos", "eot", "eom"] {
            self.end_ids.extend(self.named_id(metadata, name)?);
        }
        self.unknown_id = self.named_id(metadata, "unknown")?;
        Self::warn_of_unset_ids(metadata)
    }

    /// Returns the id under `tokenizer.ggml.NAME_token_id`.
    pub(super) fn named_id(&self, metadata: &GgufMetadata, name: &str) -> Result<Option<TokenId>> {
        Ok(metadata.token_id(name)?.and_then(|id| TokenId::try_from(id).ok()))
    }

    /// Warns of special tokens whose ids are outside of the vocabulary.
    fn warn_of_unset_ids(metadata: &GgufMetadata) -> Result<()> {
        for name in SPECIAL_TOKENS {
            let Some(id) = metadata.unset_token_id(name)? else { continue };
            match *name {
                "eos" => tracing::warn!(
                    %id,
                    "`tokenizer.ggml.eos_token_id` is not in the vocabulary: the file names no token that ends a text"
                ),
                name => {
                    tracing::warn!(name, %id, "the id of a special token is not in the vocabulary: the file has none")
                }
            }
        }
        Ok(())
    }

    /// Replaces the text and type of token `id`.
    pub(super) fn respell(&mut self, id: TokenId, text: String, ty: TokenType) {
        let token = &mut self.tokens[id as usize];
        self.ids.remove(&token.text);
        self.ids.insert(text.clone(), id);
        *token = VocabularyToken { text, ty };
    }

    /// Replaces the texts of all used tokens.
    pub(super) fn respell_all(&mut self, spell: impl Fn(&VocabularyToken) -> String) {
        (self.ids, self.duplicates) = (HashMap::with_capacity(self.tokens.len()), Vec::new());
        for (id, token) in self.tokens.iter_mut().enumerate() {
            if token.ty == TokenType::Unused {
                continue;
            }
            token.text = spell(token);
            if let Some(earlier) = self.ids.insert(token.text.clone(), id as TokenId) {
                self.duplicates.push((earlier, id as TokenId));
            }
        }
    }

    /// Number of tokens, including unused ones.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn token(&self, id: TokenId) -> &VocabularyToken {
        &self.tokens[id as usize]
    }

    /// Id of the used token with this text.
    pub(super) fn id(&self, text: &str) -> Option<TokenId> {
        self.ids.get(text).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TokenId, &VocabularyToken)> {
        self.tokens.iter().enumerate().map(|(id, token)| (id as TokenId, token))
    }

    /// Iterates over the used tokens that text can encode to.
    pub(super) fn used(&self) -> impl Iterator<Item = (TokenId, &VocabularyToken)> {
        self.iter().filter(|(id, token)| token.ty != TokenType::Unused && self.id(&token.text) == Some(*id))
    }
}
