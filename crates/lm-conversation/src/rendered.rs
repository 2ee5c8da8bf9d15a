//! Rendered prompts: text, ids and masks.

use std::ops::Range;

use lm_template::{Origin, Polyfill, PolyfilledPrompt, Prompt};
use lm_tokenizer::{TextSegment, TokenId, Tokenizer};

use crate::error::Result;

/// Permission for added tokens of the tokenizer in messages, tools and documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContentTokens {
    /// Denied: `<|im_end|>` in a message is encoded as plain text.
    #[default]
    Plain,
    /// Allowed, as in transformers: for the application's own content, never for untrusted content.
    Recognized,
}

/// A prompt as passed to the model.
///
/// The masks have one entry per id. They are exact for tokenizers that are lossless by byte, such as
/// byte-level ones; a token that crosses a border counts as inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPrompt {
    /// The text.
    pub text: String,
    /// Its ids. Added tokens are recognised in the template's text only, unless [`ContentTokens`] says
    /// otherwise. Rows of media have the ids of [`Media::pieces`](lm_session::Media::pieces).
    pub ids: Vec<TokenId>,
    /// 1 for ids of content (messages, tools, documents), 0 for ids of the template.
    pub mask: Vec<u8>,
    /// 1 for ids inside a `{% generation %}` block of the template, for training on the model's own turns.
    pub generation_mask: Vec<u8>,
    /// Changes made to the conversation for features that the template lacks.
    pub polyfills: Vec<Polyfill>,
}

impl RenderedPrompt {
    /// Encodes a prompt and computes its masks.
    ///
    /// # Errors
    /// When the tokenizer fails on the text.
    pub fn new(rendered: &PolyfilledPrompt, tokenizer: &Tokenizer, content: ContentTokens) -> Result<Self> {
        let PolyfilledPrompt { prompt, polyfills, .. } = rendered;
        let ids = encode(prompt, tokenizer, content)?;
        let mut at = 0;
        let mut content = Vec::new();
        for segment in &prompt.segments {
            let range = at..at + segment.text.len();
            at = range.end;
            if segment.origin == Origin::Content {
                content.push(range);
            }
        }
        let text = prompt.text();
        let spelled: usize = ids.iter().map(|id| tokenizer.token_bytes(*id).len()).sum();
        let mut end = 0;
        let spans: Vec<Range<usize>> = ids
            .iter()
            .map(|id| {
                let start = end;
                end += tokenizer.token_bytes(*id).len();
                // A SentencePiece tokenizer adds one blank at the start.
                let shift = spelled.saturating_sub(text.len());
                start.saturating_sub(shift)..end.saturating_sub(shift)
            })
            .collect();
        let (mask, generation_mask) = (overlap(&spans, &content), overlap(&spans, &prompt.generation));
        Ok(Self { text, ids, mask, generation_mask, polyfills: polyfills.clone() })
    }
}

/// Encodes a prompt to ids.
pub(crate) fn encode(prompt: &Prompt, tokenizer: &Tokenizer, content: ContentTokens) -> Result<Vec<TokenId>> {
    let segments = prompt.segments.iter().map(|segment| match (segment.origin, content) {
        (Origin::Content, ContentTokens::Plain) => TextSegment::Content(&segment.text),
        _ => TextSegment::Template(&segment.text),
    });
    Ok(tokenizer.encode_segments(&segments.collect::<Vec<_>>())?)
}

/// Returns 1 for each span that overlaps one of the ranges, otherwise 0. Both are sorted.
fn overlap(spans: &[Range<usize>], ranges: &[Range<usize>]) -> Vec<u8> {
    let meets = |span: &Range<usize>| {
        let first = ranges.partition_point(|range| range.end <= span.start);
        ranges.get(first).is_some_and(|range| range.start < span.end && span.start < span.end)
    };
    spans.iter().map(|span| u8::from(meets(span))).collect()
}
