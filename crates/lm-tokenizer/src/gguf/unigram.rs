//! Unigram (`t5`): the segmentation of the highest score, of SentencePiece; XLM-RoBERTa has it.

use lm_formats::{Error as FormatError, GgufMetadata};
use tokenizers::decoders::metaspace::Metaspace as MetaspaceDecoder;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{NormalizerWrapper, Precompiled, Replace, Sequence};
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};

use super::Parts;
use super::sentencepiece::{ADD_SPACE_PREFIX, MARK};
use super::vocabulary::{SCORES, TokenType, Vocabulary};
use crate::token_table::Spelling;
use crate::{Error, Result};

const CHARS_MAP: &str = "tokenizer.ggml.precompiled_charsmap";
const REMOVE_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
/// Maximum bytes of a piece: the library recurses over a chain of as many nodes.
const MAX_PIECE_BYTES: usize = 1024;

/// Builds a `t5` tokenizer.
pub(super) fn build(metadata: &GgufMetadata, vocabulary: &mut Vocabulary) -> Result<Parts> {
    let Some(unknown) = vocabulary.unknown_id else {
        let expected = "the id of the token of unknown text";
        return Err(metadata.invalid("tokenizer.ggml.unknown_token_id", "absent", expected).into());
    };
    let Some(scores) = &vocabulary.scores else {
        return Err(metadata.invalid(SCORES, "absent", "a score for each token").into());
    };
    // Text never becomes a control or unused token: the worst score, and a text that no other token has.
    let piece = |(id, token): (u32, &super::vocabulary::VocabularyToken)| match token.ty {
        TokenType::Unused => (format!("<unused{id}>"), f64::from(f32::MIN)),
        TokenType::Control => (token.text.clone(), f64::from(f32::MIN)),
        _ => (token.text.clone(), f64::from(scores[id as usize])),
    };
    let pieces: Vec<(String, f64)> = vocabulary.iter().map(piece).collect();
    if let Some((text, _)) = pieces.iter().find(|(text, _)| text.len() > MAX_PIECE_BYTES) {
        let got = format!("a piece of {} bytes", text.len());
        return Err(metadata
            .invalid("tokenizer.ggml.tokens", got, format!("{MAX_PIECE_BYTES} bytes at most"))
            .into());
    }
    let model = Unigram::from(pieces, Some(unknown as usize), false).map_err(Error::Library)?;
    let prefix = metadata.bool(ADD_SPACE_PREFIX)?.unwrap_or(true);
    let scheme = if prefix { PrependScheme::Always } else { PrependScheme::Never };
    let mark = MARK.chars().next().unwrap_or('▁');
    let mut library = tokenizers::Tokenizer::new(model);
    library.with_normalizer(normalizer(metadata)?).map_err(Error::Library)?;
    library.with_pre_tokenizer(Some(Metaspace::new(mark, scheme, true)));
    library.with_decoder(Some(MetaspaceDecoder::new(mark, scheme, true)));
    let replace = vec![(MARK.to_owned(), " ".to_owned())];
    let spelling = Spelling::Metaspace { replace, byte_fallback: false, leading_spaces: usize::from(prefix) };
    Ok(Parts { library, spelling })
}

/// Normalisation of SentencePiece: the file's character map, then single spaces.
fn normalizer(metadata: &GgufMetadata) -> Result<Option<Sequence>> {
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if let Some(map) = metadata.ints(CHARS_MAP)? {
        let bytes: Vec<u8> = map.into_iter().map(|byte| byte as u8).collect();
        let invalid = |cause: String| FormatError::InvalidValue {
            file: metadata.file().to_owned(),
            key: CHARS_MAP.to_owned(),
            value: cause,
            expected: "a character map of SentencePiece".to_owned(),
        };
        let map = crate::guarded::guarded(|| Ok(Precompiled::from(&bytes).map_err(|e| e.to_string())));
        steps.push(map?.map_err(invalid)?.into());
    }
    if metadata.bool(REMOVE_SPACES)?.unwrap_or(false) {
        steps.push(NormalizerWrapper::from(tokenizers::normalizers::Strip::new(true, true)));
        let runs = ReplacePattern::Regex(" {2,}".to_owned());
        steps.push(Replace::new(runs, " ").map_err(Error::Library)?.into());
    }
    Ok(if steps.is_empty() { None } else { Some(Sequence::new(steps)) })
}
