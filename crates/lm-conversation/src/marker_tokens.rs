//! Added tokens of a model in the markers of its dialect.

use std::collections::HashSet;

use lm_processors::{Channel, MarkerTokens, ModelDataProcessor};
use lm_session::Tokenizer;

/// Finds the added tokens of `tokenizer` in the markers of `processor` and of `channels`, as the grammar
/// compiler does: the longest match at each position.
pub(crate) fn marker_tokens(
    processor: &dyn ModelDataProcessor,
    channels: Option<&[Channel]>,
    tokenizer: &Tokenizer,
) -> MarkerTokens {
    let channels = channels.into_iter().flatten().flat_map(|channel| [&*channel.start, &*channel.end]);
    let added: HashSet<&[u8]> = tokenizer.added_tokens().map(|id| tokenizer.token_bytes(id)).collect();
    let longest = added.iter().map(|token| token.len()).max().unwrap_or(0);
    MarkerTokens::in_markers(processor.markers().into_iter().chain(channels), |text| {
        let text = text.as_bytes();
        (1..=longest.min(text.len())).rev().find(|len| added.contains(&text[..*len]))
    })
}
