//! Conversion of a `tokenizer.json` to the metadata of a GGUF file.
//!
//! For a byte-level tokenizer that the keys and names of GGUF cannot fully represent, the complete
//! tokenizer.json is stored as well.

use std::collections::HashMap;

use lm_formats::file_names::TOKENIZER as TOKENIZER_FILE;
use lm_formats::{Error as FormatError, GgufEntries, GgufEntry};
use serde::Deserialize;
use serde_json::Value;

use super::merges::{self, MERGES};
use super::pre_tokenizers::{self, IgnoreMerges};
use super::sentencepiece::{ADD_SPACE_PREFIX, MARK};
use super::vocabulary::{SCORES, TOKENS, TYPES, TokenType};
use super::{JSON, MODEL, Tokenizer};
use crate::token_table::MAX_IDS;
use crate::{Error, Result, TokenId};

/// Pre-tokenizer name where GGUF has none: readers that require a known name reject it instead of splitting
/// texts differently.
const UNNAMED: &str = "huggingface";

/// Parts of tokenizer.json with a GGUF equivalent, and those that must be absent.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    post_processor: Option<Value>,
    model: Model,
}

#[derive(Deserialize)]
struct AddedToken {
    id: TokenId,
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: HashMap<String, TokenId>,
    merges: Vec<Merge>,
}

/// Merge of two tokens, in either form of the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Line(String),
    Pair(String, String),
}

impl Merge {
    fn merged(&self) -> String {
        match self {
            Self::Line(line) => {
                merges::split(line).map_or_else(String::new, |(left, right)| [left, right].concat())
            }
            Self::Pair(left, right) => [left.as_str(), right].concat(),
        }
    }

    fn line(self) -> String {
        match self {
            Self::Line(line) => line,
            Self::Pair(left, right) => format!("{left} {right}"),
        }
    }
}

impl Tokenizer {
    /// Converts a `tokenizer.json` to GGUF metadata, for a model of this `general.architecture` whose
    /// embedding has `rows` rows.
    ///
    /// # Errors
    /// [`lm_formats::Error::Json`] for another kind of file, [`Error::Unsupported`] for parts without a GGUF
    /// key or name.
    pub fn gguf_entries(json: &[u8], architecture: &str, rows: usize) -> Result<GgufEntries> {
        let file: File = serde_json::from_slice(json)
            .map_err(|source| FormatError::Json { file: TOKENIZER_FILE.into(), source })?;
        file.check(rows)?;
        let mut keys = GgufEntries::default();
        let text = |text: &str| GgufEntry::Text(text.to_owned());
        let (model, pre) = match (file.is_byte_level(), architecture) {
            (true, _) => ("gpt2", file.pre_tokenizer().unwrap_or(UNNAMED)),
            (false, "gemma4") => ("gemma4", "default"),
            (false, _) => ("llama", "default"),
        };
        if file.is_byte_level() && (pre == UNNAMED || file.normalizer.is_some()) {
            keys.put(JSON, GgufEntry::Text(String::from_utf8_lossy(json).into_owned()));
        }
        keys.put(MODEL, text(model));
        keys.put(pre_tokenizers::KEY, text(pre));
        if !file.is_byte_level() {
            keys.put(ADD_SPACE_PREFIX, GgufEntry::Bool(file.space_prefix()?));
        }
        let (tokens, types): (Vec<_>, Vec<_>) = file.tokens(rows).into_iter().unzip();
        if model == "llama" {
            keys.put(SCORES, GgufEntry::Floats(file.scores(&types)));
        }
        keys.put(TOKENS, GgufEntry::Texts(tokens));
        keys.put(TYPES, GgufEntry::Ints(types.into_iter().map(TokenType::number).collect()));
        let [bos, eos] = file.special_ends();
        keys.put("tokenizer.ggml.add_bos_token", GgufEntry::Bool(bos));
        keys.put("tokenizer.ggml.add_eos_token", GgufEntry::Bool(eos));
        if model != "llama" {
            keys.put(MERGES, GgufEntry::Texts(file.model.merges.into_iter().map(Merge::line).collect()));
        }
        Ok(keys)
    }
}

impl File {
    /// Fails on parts that the metadata of a GGUF file cannot represent.
    fn check(&self, rows: usize) -> Result<()> {
        if let Some(kind) = self.model.kind.as_deref().filter(|kind| *kind != "BPE") {
            return Err(unsupported("model.type", kind, "BPE"));
        }
        let highest = self.ids().map(|(_, id)| id as usize).max().unwrap_or(0);
        if rows > MAX_IDS || highest >= rows {
            return Err(FormatError::InvalidValue {
                file: TOKENIZER_FILE.into(),
                key: "the highest id".into(),
                value: highest.to_string(),
                expected: format!("below the {rows} rows of the embedding"),
            }
            .into());
        }
        match self.added_token_with_a_rule() {
            Some((part, token)) if !self.is_byte_level() => {
                Err(unsupported(part, format!("true for {:?}", token.content), "false in GGUF files"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an added token that affects the text around it, with the rule.
    fn added_token_with_a_rule(&self) -> Option<(&'static str, &AddedToken)> {
        self.added_tokens.iter().find_map(|token| {
            let rules = [
                (token.lstrip, "added_tokens.lstrip"),
                (token.rstrip, "added_tokens.rstrip"),
                (token.single_word, "added_tokens.single_word"),
            ];
            rules.into_iter().find(|rule| rule.0).map(|(_, part)| (part, token))
        })
    }

    fn ids(&self) -> impl Iterator<Item = (&str, TokenId)> {
        let added = self.added_tokens.iter().map(|token| (token.content.as_str(), token.id));
        self.model.vocab.iter().map(|(text, id)| (text.as_str(), *id)).chain(added)
    }

    fn is_byte_level(&self) -> bool {
        steps(self.pre_tokenizer.as_ref(), "pretokenizers").iter().any(|step| kind(step) == "ByteLevel")
    }

    /// Returns the GGUF name of the pre-tokenizer: of the best verified row with the same patterns. (NFC
    /// normalisation has no name. Other writers omit it, and most texts are NFC already.)
    fn pre_tokenizer(&self) -> Option<&'static str> {
        let is_plain = self.normalizer.as_ref().is_none_or(|normalizer| kind(normalizer) == "NFC");
        if !is_plain || self.added_token_with_a_rule().is_some() {
            return None;
        }
        let ignore_merges = if self.model.ignore_merges { IgnoreMerges::Yes } else { IgnoreMerges::No };
        let steps = steps(self.pre_tokenizer.as_ref(), "pretokenizers");
        let patterns: Option<Vec<_>> = steps.iter().map(pattern).collect();
        let patterns: Vec<_> = patterns?.into_iter().flatten().collect();
        pre_tokenizers::find_patterns(&patterns, ignore_merges).map(|row| row.name)
    }

    /// Returns true if a space is prepended to a text.
    fn space_prefix(&self) -> Result<bool> {
        let normalizers = steps(self.normalizer.as_ref(), "normalizers");
        let pre_tokenizers = steps(self.pre_tokenizer.as_ref(), "pretokenizers");
        let mut prefix = false;
        for step in normalizers.iter().chain(&pre_tokenizers) {
            match kind(step) {
                "Prepend" if step["prepend"] == MARK => prefix = true,
                "Metaspace" => {
                    prefix |= step["prepend_scheme"] != "never" && step["add_prefix_space"] != false
                }
                // After this, the pieces contain no spaces.
                "Replace" if step["pattern"]["String"] == " " && step["content"] == MARK => {}
                "Split" if step["pattern"]["String"] == " " => {}
                _ => return Err(unsupported("normalizer", step, "Prepend and Replace with `▁`, Metaspace")),
            }
        }
        Ok(prefix)
    }

    /// Returns the tokens by id with their types; unassigned ids become padding.
    fn tokens(&self, rows: usize) -> Vec<(String, TokenType)> {
        let unused = |id: usize| (format!("[PAD{id}]"), TokenType::Unused);
        let mut tokens: Vec<_> = (0..rows).map(unused).collect();
        for (text, id) in &self.model.vocab {
            let is_byte = self.model.byte_fallback
                && text
                    .strip_prefix("<0x")
                    .and_then(|hex| hex.strip_suffix('>'))
                    .is_some_and(|hex| hex.len() == 2);
            let ty = match () {
                () if is_byte => TokenType::Byte,
                () if !self.is_byte_level() && self.model.unk_token.as_ref() == Some(text) => {
                    TokenType::Unknown
                }
                () => TokenType::Normal,
            };
            tokens[*id as usize] = (text.clone(), ty);
        }
        for token in &self.added_tokens {
            let slot = &mut tokens[token.id as usize];
            let ty = if token.special { TokenType::Control } else { TokenType::UserDefined };
            *slot = (token.content.clone(), if slot.1 == TokenType::Unknown { slot.1 } else { ty });
        }
        tokens
    }

    /// Derives scores that reproduce the order of the merges.
    fn scores(&self, types: &[TokenType]) -> Vec<f32> {
        let last = -((self.model.merges.len() + 1) as f32);
        let score = |ty: &TokenType| if *ty == TokenType::Normal { last } else { 0.0 };
        let mut scores: Vec<f32> = types.iter().map(score).collect();
        for (rank, merge) in self.model.merges.iter().enumerate().rev() {
            if let Some(&id) = self.model.vocab.get(&merge.merged()) {
                scores[id as usize] = -(rank as f32);
            }
        }
        scores
    }

    /// Returns true for each end of a text, start and end, where a special token is added.
    fn special_ends(&self) -> [bool; 2] {
        let steps = steps(self.post_processor.as_ref(), "processors");
        let template = steps.iter().find(|step| kind(step) == "TemplateProcessing");
        let single =
            template.and_then(|template| template["single"].as_array()).map_or(&[][..], Vec::as_slice);
        let special = |piece: Option<&Value>| piece.is_some_and(|piece| piece.get("SpecialToken").is_some());
        [special(single.first()), special(single.last())]
    }
}

/// Returns the steps of a part: those of a sequence, or the part itself.
fn steps(part: Option<&Value>, sequence: &str) -> Vec<Value> {
    match part {
        Some(part) if kind(part) == "Sequence" => part[sequence].as_array().cloned().unwrap_or_default(),
        Some(part) if !part.is_null() => vec![part.clone()],
        _ => Vec::new(),
    }
}

fn kind(part: &Value) -> &str {
    part["type"].as_str().unwrap_or_default()
}

/// Returns the split pattern of a step, if it splits; `None` for a step without an equivalent pattern.
fn pattern(step: &Value) -> Option<Option<&str>> {
    match kind(step) {
        "ByteLevel" if step["add_prefix_space"] == true => None,
        "ByteLevel" => Some((step["use_regex"] != false).then_some(pre_tokenizers::GPT2)),
        "Digits" if step["individual_digits"] == true => Some(Some(pre_tokenizers::DIGIT)),
        "Split" if step["behavior"] == "Isolated" && step["invert"] != true => {
            step["pattern"]["Regex"].as_str().map(Some)
        }
        _ => None,
    }
}

fn unsupported(part: &'static str, value: impl ToString, known: &'static str) -> Error {
    Error::Unsupported { part, value: value.to_string(), known }
}
