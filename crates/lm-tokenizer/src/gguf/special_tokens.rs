//! Tokens around a separate text, or a pair of them: BOS and EOS, or an encoder's.

use lm_formats::{GgufMetadata, Result};
use tokenizers::processors::template::{SpecialToken, TemplateProcessing};

use super::vocabulary::Vocabulary;
use super::{MODEL, pre_tokenizers};
use crate::TokenId;

/// Pre-tokenizers whose texts begin with BOS where the file does not say so, as in llama.cpp.
const WITH_BOS: &[&str] =
    &["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken"];
/// Ids in a SentencePiece file that does not name them.
const SENTENCEPIECE: [TokenId; 2] = [1, 2];

/// Returns the post-processor that adds the file's BOS and EOS (`add_bos_token`, `add_eos_token`); `None` if
/// it adds neither.
pub(super) fn post_processor(
    metadata: &GgufMetadata,
    vocabulary: &Vocabulary,
) -> Result<Option<TemplateProcessing>> {
    if let Some(pair) = Pair::of(metadata, vocabulary)? {
        return Ok(pair.post_processor(vocabulary));
    }
    let sentencepiece = metadata.str(MODEL)? == Some("llama");
    let by_name = metadata.str(pre_tokenizers::KEY)?.is_some_and(|name| WITH_BOS.contains(&name));
    let defaults = [sentencepiece || by_name, false];
    let mut ends = [None, None];
    for (at, name) in ["bos", "eos"].into_iter().enumerate() {
        let added = metadata.bool(&format!("tokenizer.ggml.add_{name}_token"))?.unwrap_or(defaults[at]);
        if added {
            let unnamed = sentencepiece.then_some(SENTENCEPIECE[at]);
            let id = vocabulary.named_id(metadata, name)?.or(unnamed);
            ends[at] = id.filter(|&id| (id as usize) < vocabulary.len()).map(|id| (name, id));
        }
    }
    let pieces = [ends[0].map(|(name, _)| name), Some("$A"), ends[1].map(|(name, _)| name)];
    let pieces: Vec<&str> = pieces.into_iter().flatten().collect();
    if pieces == ["$A"] {
        return Ok(None);
    }
    let token = |(name, id): (&str, TokenId)| {
        SpecialToken::new(name.to_owned(), vec![id], vec![vocabulary.token(id).text.clone()]).ok()
    };
    let tokens: Vec<_> = ends.into_iter().flatten().filter_map(token).collect();
    // The pieces are constants, and each of them has its token.
    Ok(TemplateProcessing::builder()
        .try_single(pieces)
        .ok()
        .and_then(|builder| builder.special_tokens(tokens).build().ok()))
}

/// Tokens around the texts of an encoder, which may come in pairs.
struct Pair {
    first: TokenId,
    last: TokenId,
    /// Number of separators between two texts.
    between: usize,
}

impl Pair {
    /// The tokens of a WordPiece or Unigram file; `None` for other kinds.
    fn of(metadata: &GgufMetadata, vocabulary: &Vocabulary) -> Result<Option<Self>> {
        let between = match metadata.str(MODEL)? {
            Some("bert") => 1,
            Some("t5") => 2,
            _ => return Ok(None),
        };
        let find = |names: &[&str]| {
            let ids =
                names.iter().map(|name| vocabulary.named_id(metadata, name)).collect::<Result<Vec<_>>>();
            Ok::<_, lm_formats::Error>(
                ids?.into_iter().flatten().find(|&id| (id as usize) < vocabulary.len()),
            )
        };
        let first = find(&["cls", "bos"])?;
        // The misspelled key is the format's own.
        let last = find(&["seperator", "separator", "eos"])?;
        Ok(first.zip(last).map(|(first, last)| Self { first, last, between }))
    }

    /// The types of the second text's tokens are 1 where one token separates the texts: BERT's.
    fn post_processor(self, vocabulary: &Vocabulary) -> Option<TemplateProcessing> {
        let Self { first, last, between } = self;
        let ty = u8::from(between == 1);
        let single = "first:0 $A:0 last:0".to_owned();
        let separators = vec!["last:0"; between].join(" ");
        let pair = format!("first:0 $A:0 {separators} $B:{ty} last:{ty}");
        let token = |name: &str, id: TokenId| {
            SpecialToken::new(name.to_owned(), vec![id], vec![vocabulary.token(id).text.clone()]).ok()
        };
        let tokens: Vec<_> = [token("first", first), token("last", last)].into_iter().flatten().collect();
        let builder = &mut TemplateProcessing::builder();
        let builder = builder.try_single(single).ok()?.try_pair(pair).ok()?;
        builder.special_tokens(tokens).build().ok()
    }
}
