//! Tokens around a separate text: BOS and EOS.

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
