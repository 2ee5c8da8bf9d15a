//! SentencePiece BPE: `llama`, whose merges are derived from scores, and `gemma4`, which lists them. Spaces
//! are written `▁`, and unknown text falls back to single bytes.

use lm_formats::{Error as FormatError, GgufMetadata};
use tokenizers::DecoderWrapper;
use tokenizers::decoders::{byte_fallback::ByteFallback, fuse::Fuse, sequence, strip::Strip};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence};

use super::merges::{self, MERGES, Merges, Order};
use super::vocabulary::{TokenType, Vocabulary};
use super::{BpeOptions, Parts, model};
use crate::token_table::Spelling;
use crate::{Error, Result, TokenId};

/// SentencePiece's mark for a space.
pub(super) const MARK: &str = "▁";
pub(super) const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
/// Architectures whose scores do not follow the merge order; the ids do.
const ORDERED_BY_ID: [&str; 4] = ["gemma", "gemma2", "gemma3", "gemma3n"];

/// Builds a `llama` tokenizer: merges are derived from the vocabulary unless they are listed.
pub(super) fn with_scores(metadata: &GgufMetadata, vocabulary: &mut Vocabulary) -> Result<Parts> {
    refuse_other_normalisation(metadata)?;
    let order = order(metadata, vocabulary)?;
    if order == Order::Ids {
        restore_runs_of_spaces(vocabulary);
    }
    let merges = match metadata.contains(MERGES) {
        true => merges::listed(metadata, vocabulary)?,
        false => merges::implied(metadata, vocabulary, order)?,
    };
    build(metadata, vocabulary, merges, SpacePrefix::Added)
}

/// Builds a `gemma4` tokenizer.
pub(super) fn with_merges(metadata: &GgufMetadata, vocabulary: &mut Vocabulary) -> Result<Parts> {
    let merges = merges::listed(metadata, vocabulary)?;
    build(metadata, vocabulary, merges, SpacePrefix::None)
}

/// Space prefix of a text where the file does not specify it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpacePrefix {
    /// A space is prepended, also to pieces after added tokens.
    Added,
    None,
}

fn build(
    metadata: &GgufMetadata,
    vocabulary: &Vocabulary,
    merges: Merges,
    prefix: SpacePrefix,
) -> Result<Parts> {
    let prefix = metadata.bool(ADD_SPACE_PREFIX)?.unwrap_or(prefix == SpacePrefix::Added);
    let unknown_token = vocabulary.unknown_id.map(|id| vocabulary.token(id).text.clone());
    let missing_byte = (0..=u8::MAX).find(|byte| vocabulary.id(&format!("<0x{byte:02X}>")).is_none());
    if let (Some(byte), None) = (missing_byte, &unknown_token) {
        let expected = format!("an id: there is no token <0x{byte:02X}> for what no other token spells");
        return Err(metadata.invalid("tokenizer.ggml.unknown_token_id", "absent", expected).into());
    }
    let options = BpeOptions { byte_fallback: true, unknown_token, ..BpeOptions::default() };
    let mut library = tokenizers::Tokenizer::new(model(vocabulary, merges, options)?);
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if prefix {
        steps.push(Prepend::new(MARK.to_owned()).into());
    }
    steps.push(Replace::new(" ", MARK).map_err(Error::Library)?.into());
    library.with_normalizer(Some(Sequence::new(steps))).map_err(Error::Library)?;
    library.with_decoder(Some(decoder(prefix)?));
    let replace = vec![(MARK.to_owned(), " ".to_owned())];
    let spelling = Spelling::Metaspace { replace, byte_fallback: true, leading_spaces: usize::from(prefix) };
    Ok(Parts { library, spelling })
}

/// Builds the decoder, with which a `tokenizer.json` describes the spelling.
fn decoder(prefix: bool) -> Result<sequence::Sequence> {
    let mut steps: Vec<DecoderWrapper> = vec![
        Replace::new(MARK, " ").map_err(Error::Library)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if prefix {
        steps.push(Strip::new(' ', 1, 0).into());
    }
    Ok(sequence::Sequence::new(steps))
}

/// Returns the merge order: by scores if the file's scores define one, else by ids.
fn order(metadata: &GgufMetadata, vocabulary: &Vocabulary) -> Result<Order> {
    if ORDERED_BY_ID.contains(&metadata.architecture()?) {
        return Ok(Order::Ids);
    }
    let Some(scores) = &vocabulary.scores else { return Ok(Order::Ids) };
    let mut normal = vocabulary.used().filter(|(_, token)| token.ty == TokenType::Normal);
    let first = normal.next().map(|(id, _)| scores[id as usize]);
    let alike = normal.all(|(id, _)| Some(scores[id as usize]) == first);
    Ok(if alike { Order::Ids } else { Order::Scores })
}

/// Rewrites Gemma's runs of spaces, which are stored as plain spaces, with `▁`. They merge like other tokens.
fn restore_runs_of_spaces(vocabulary: &mut Vocabulary) {
    let is_run = |text: &str| text.bytes().all(|byte| byte == b' ');
    let runs: Vec<(TokenId, usize)> = vocabulary
        .used()
        .filter(|(_, token)| is_run(&token.text))
        .map(|(id, token)| (id, token.text.len()))
        .collect();
    for (id, len) in runs {
        let text = MARK.repeat(len);
        if vocabulary.id(&text).is_none() {
            vocabulary.respell(id, text, TokenType::Normal);
        }
    }
}

/// Rejects files that remove extra white space: the text is not normalised.
fn refuse_other_normalisation(metadata: &GgufMetadata) -> Result<()> {
    const KEY: &str = "tokenizer.ggml.remove_extra_whitespaces";
    match metadata.bool(KEY)? {
        Some(true) => Err(FormatError::UnsupportedValue {
            file: metadata.file().to_owned(),
            key: KEY.into(),
            value: "true".into(),
            known: "false".into(),
        }
        .into()),
        _ => Ok(()),
    }
}
