//! Tokenizers from the metadata of GGUF files.
//!
//! Source: the keys `tokenizer.ggml.*` of the GGUF specification; what they mean to llama.cpp (`src/llama-vocab.cpp`) and to
//! transformers 5.23 (`integrations/gguf/gguf_tokenizer_mapping.py`). `docs/decisions/0026-gguf-tokenizers.md` says what is done
//! where those two differ.

mod byte_level;
mod end_tokens;
mod merges;
mod pre_tokenizers;
mod sentencepiece;
mod vocabulary;
mod write;

use tokenizers::AddedToken;
use tokenizers::models::bpe::BPE;

use self::vocabulary::{TokenType, Vocabulary};
use super::{Spelling, Tokenizer};
use crate::model_folder::{MAX_TABLE_BYTES, check_size};
use crate::{Error, GgufMetadata, Result};

const MODEL: &str = "tokenizer.ggml.model";
/// The whole of the model's tokenizer.json.
const JSON: &str = "tokenizer.huggingface.json";

/// A kind of tokenizer: `tokenizer.ggml.model`, and what makes the library's tokenizer from the metadata.
struct Kind {
    name: &'static str,
    build: fn(&GgufMetadata, &mut Vocabulary) -> Result<Parts>,
}

/// What the kinds of tokenizers make: the library's tokenizer without its added tokens, and how it spells bytes.
struct Parts {
    library: tokenizers::Tokenizer,
    spelling: Spelling,
}

const KINDS: &[Kind] = &[
    Kind { name: "gemma4", build: sentencepiece::with_merges },
    Kind { name: "gpt2", build: byte_level::build },
    Kind { name: "llama", build: sentencepiece::with_scores },
];

impl Tokenizer {
    /// Makes the tokenizer that a GGUF file describes, with its end ids and the number of its tokens as the logits width.
    ///
    /// A file that holds the model's tokenizer.json (`tokenizer.huggingface.json`) gives that one.
    ///
    /// The end ids are those that the file names, and the tokens of known chat formats that end a reply, since a file names
    /// one where models have several.
    ///
    /// # Errors
    /// [`Error::UnsupportedValue`] for a kind of tokenizer or pre-tokenizer that is not known, [`Error::InvalidValue`] for
    /// tokens, scores, merges or ids that do not fit each other, [`Error::Gguf`] for keys that are absent or of another type, and
    /// those of [`Tokenizer::from_json`].
    pub fn from_gguf(metadata: &GgufMetadata) -> Result<Self> {
        let name = metadata.required(MODEL, GgufMetadata::str)?;
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| Error::UnsupportedValue {
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
                library.add_tokens(added_tokens(&vocabulary)).map_err(Error::Tokenizer)?;
                Self::from_library(library, &spelling, &vocabulary.doubles)?
            }
        };
        let end_ids = end_tokens::find(&vocabulary);
        Ok(tokenizer.with_end_ids(end_ids).with_logits_width(vocabulary.len()))
    }
}

/// The tokens that are found in the text before anything else looks at it.
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

/// How the library's model treats what it cannot spell, and whole words.
#[derive(Default)]
struct BpeOptions {
    byte_fallback: bool,
    unknown_token: Option<String>,
    ignore_merges: bool,
}

/// The library's model. Unused tokens are not part of it: no text becomes one, and they have no text.
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
    builder.build().map_err(Error::Tokenizer)
}
