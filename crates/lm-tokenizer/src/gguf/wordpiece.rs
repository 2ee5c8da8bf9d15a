//! WordPiece (`bert`): words of the normalised text, cut into the longest pieces. Files mark the first piece
//! of a word with `▁`, where `vocab.txt` marks the later ones with `##`.

use lm_formats::GgufMetadata;
use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

use super::Parts;
use super::sentencepiece::MARK;
use super::vocabulary::{TokenType, Vocabulary, VocabularyToken};
use crate::token_table::Spelling;
use crate::{Error, Result};

const PREFIX: &str = "##";
/// Longer words are unknown, as in BERT's code.
const MAX_WORD_CHARS: usize = 100;
const LOWERCASE: &str = "tokenizer.ggml.normalizer.lowercase";
const STRIP_ACCENTS: &str = "tokenizer.ggml.normalizer.strip_accents";

/// Builds a `bert` tokenizer.
pub(super) fn build(metadata: &GgufMetadata, vocabulary: &mut Vocabulary) -> Result<Parts> {
    vocabulary.respell_all(spelling);
    let unknown = match vocabulary.unknown_id {
        Some(id) => vocabulary.token(id).text.clone(),
        None => {
            let expected = "the id of the token of unknown words";
            return Err(metadata.invalid("tokenizer.ggml.unknown_token_id", "absent", expected).into());
        }
    };
    let lowercase = metadata.bool(LOWERCASE)?.unwrap_or(true);
    let strip_accents = metadata.bool(STRIP_ACCENTS)?.unwrap_or(lowercase);
    let used = vocabulary.used().map(|(id, token)| (token.text.clone(), id)).collect();
    let model = WordPiece::builder()
        .vocab::<tokenizers::models::bpe::Vocab>(used)
        .unk_token(unknown)
        .continuing_subword_prefix(PREFIX.to_owned())
        .max_input_chars_per_word(MAX_WORD_CHARS)
        .build()
        .map_err(Error::Library)?;
    let mut library = tokenizers::Tokenizer::new(model);
    library
        .with_normalizer(Some(BertNormalizer::new(true, true, Some(strip_accents), lowercase)))
        .map_err(Error::Library)?;
    library.with_pre_tokenizer(Some(BertPreTokenizer));
    library.with_decoder(Some(WordPieceDecoder::new(PREFIX.to_owned(), false)));
    Ok(Parts { library, spelling: Spelling::WordPiece { prefix: PREFIX.to_owned() } })
}

/// Text of a token as in `vocab.txt`.
fn spelling(token: &VocabularyToken) -> String {
    match (token.ty, token.text.strip_prefix(MARK)) {
        (TokenType::Control | TokenType::Unknown, _) => token.text.clone(),
        (_, Some(first)) => first.to_owned(),
        (_, None) => format!("{PREFIX}{}", token.text),
    }
}
