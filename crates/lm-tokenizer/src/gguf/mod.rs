//! Tokenizers from the metadata of GGUF files.
//!
//! Source: the keys `tokenizer.ggml.*` of the GGUF specification; their meaning in llama.cpp
//! (`src/llama-vocab.cpp`) and in transformers 5.23 (`integrations/gguf/gguf_tokenizer_mapping.py`).
//! `docs/decisions/0026-gguf-tokenizers.md` describes the behaviour where those two differ.

mod byte_level;
mod end_tokens;
mod merges;
mod pre_tokenizers;
mod sentencepiece;
mod special_tokens;
mod template_markers;
mod unigram;
mod vocabulary;
mod wordpiece;
mod write;

use lm_formats::{Error as FormatError, GgufMetadata, MAX_TABLE_BYTES, check_size};
use tokenizers::AddedToken;
use tokenizers::models::bpe::BPE;

use self::vocabulary::{TokenType, Vocabulary};
use crate::Tokenizer;
use crate::token_table::Spelling;
use crate::{Error, Result};

const MODEL: &str = "tokenizer.ggml.model";
/// Key of the model's complete tokenizer.json.
const JSON: &str = "tokenizer.huggingface.json";

/// Kind of tokenizer: its `tokenizer.ggml.model`, and the function that builds the library's tokenizer from
/// the metadata.
struct Kind {
    name: &'static str,
    build: fn(&GgufMetadata, &mut Vocabulary) -> Result<Parts>,
}

/// Result of [`Kind::build`]: the library's tokenizer without its added tokens, and its byte spelling.
struct Parts {
    library: tokenizers::Tokenizer,
    spelling: Spelling,
}

const KINDS: &[Kind] = &[
    Kind { name: "bert", build: wordpiece::build },
    Kind { name: "gemma4", build: sentencepiece::with_merges },
    Kind { name: "gpt2", build: byte_level::build },
    Kind { name: "llama", build: sentencepiece::with_scores },
    Kind { name: "t5", build: unigram::build },
];

impl Tokenizer {
    /// Builds the tokenizer of a GGUF file, with its end-of-sequence ids and the number of its tokens as the
    /// logits width.
    ///
    /// If the file contains the model's tokenizer.json (`tokenizer.huggingface.json`), that one is used.
    ///
    /// The end-of-sequence ids are those that the file names, plus the end tokens of known chat formats: a
    /// file names one where models have several.
    ///
    /// # Errors
    /// [`lm_formats::Error::UnsupportedValue`] for an unknown kind of tokenizer or pre-tokenizer,
    /// [`lm_formats::Error::InvalidValue`] for inconsistent tokens, scores, merges or ids,
    /// [`lm_formats::Error::Gguf`] for keys that are absent or of another type, and those of
    /// [`Tokenizer::from_json`].
    pub fn from_gguf(metadata: &GgufMetadata) -> Result<Self> {
        let name = metadata.required(MODEL, GgufMetadata::str)?;
        let kind =
            KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| FormatError::UnsupportedValue {
                file: metadata.file().to_owned(),
                key: MODEL.into(),
                value: name.to_owned(),
                known: KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "),
            })?;
        let mut vocabulary = Vocabulary::read(metadata)?;
        let tokenizer = match metadata.str(JSON)? {
            Some(json) => {
                check_size(MAX_TABLE_BYTES, JSON, json.as_bytes())?;
                Self::from_json(json.as_bytes())?
            }
            None => {
                let Parts { mut library, spelling } = (kind.build)(metadata, &mut vocabulary)?;
                template_markers::promote(metadata, &library, &mut vocabulary)?;
                library.add_tokens(added_tokens(&vocabulary)).map_err(Error::Library)?;
                library.with_post_processor(special_tokens::post_processor(metadata, &vocabulary)?);
                Self::from_library(library, &spelling, &vocabulary.duplicates)?
            }
        };
        let end_ids = end_tokens::find(&vocabulary);
        Ok(tokenizer.with_end_ids(end_ids).with_logits_width(vocabulary.len()))
    }
}

/// Added tokens, which are recognised in the text before pre-tokenization.
fn added_tokens(vocabulary: &Vocabulary) -> impl Iterator<Item = AddedToken> {
    vocabulary.used().filter_map(|(_, token)| {
        let special = match token.ty {
            TokenType::Control | TokenType::Unknown => true,
            TokenType::UserDefined => false,
            TokenType::Normal | TokenType::Unused | TokenType::Byte => return None,
        };
        Some(AddedToken::from(token.text.clone(), special).normalized(false))
    })
}

/// BPE options: unknown text and whole words.
#[derive(Default)]
struct BpeOptions {
    byte_fallback: bool,
    unknown_token: Option<String>,
    ignore_merges: bool,
}

/// Builds the library's model. Unused tokens are not part of it: no text encodes to one, and they have no
/// text.
fn model(vocabulary: &Vocabulary, merges: merges::Merges, options: BpeOptions) -> Result<BPE> {
    let used = vocabulary.used().map(|(id, token)| (token.text.clone(), id)).collect();
    let mut builder = BPE::builder()
        .vocab_and_merges::<tokenizers::models::bpe::Vocab>(used, merges)
        .byte_fallback(options.byte_fallback)
        .fuse_unk(options.byte_fallback)
        .ignore_merges(options.ignore_merges);
    if let Some(token) = options.unknown_token {
        builder = builder.unk_token(token);
    }
    builder.build().map_err(Error::Library)
}
