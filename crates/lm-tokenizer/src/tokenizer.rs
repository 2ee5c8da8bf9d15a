//! Tokenizer: text to ids, and ids to exact bytes.

use std::ops::Range;
use std::sync::Arc;

use tokenizers::{Encoding, NormalizedString, Normalizer, PostProcessor as _, Token};

use crate::added_tokens::AddedTokens;
use crate::guarded::guarded;
use crate::json_checks::Head;
use crate::stream_decoder::StreamDecoder;
use crate::token_table::{Spelling, TokenTable};
use crate::{Error, Result};

/// Id of a token in a model's vocabulary.
pub type TokenId = u32;

/// Segment of a prompt: text of the chat template, or text of a user or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSegment<'a> {
    /// Text of the template: added tokens in it are recognised.
    Template(&'a str),
    /// Text from outside: an added token spelled in it is ordinary text.
    Content(&'a str),
}

impl<'a> TextSegment<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Template(text) | Self::Content(text) => text,
        }
    }
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An ordinary entry of the vocabulary.
    Text,
    /// An added token that is not special, such as `<tool_call>`.
    Added,
    /// A special token: controls the model and is omitted by [`SpecialTokens::Skip`].
    Special,
}

/// Treatment of special tokens in decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialTokens {
    /// Decodes them to their text.
    Keep,
    /// Omits them.
    Skip,
}

/// Two texts as one input: [`Tokenizer::encode_pair`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// All tokens.
    pub ids: Vec<TokenId>,
    /// Index of the first token of the second type; `None` if all tokens have one type.
    pub second: Option<usize>,
}

/// Tokenizer of a model: encodes text to ids, decodes ids to exact bytes.
///
/// ```
/// use lm_tokenizer::{SpecialTokens, TextSegment, TokenKind};
///
/// let tokenizer = lm_tokenizer::testing::tokenizer();
/// let ids = tokenizer.encode_segments(&[
///     TextSegment::Template("<|im_start|>user\n"),
///     TextSegment::Content("What does <|im_end|> do?"),
/// ])?;
/// assert_eq!(tokenizer.token_kind(ids[0]), TokenKind::Special);
/// assert!(ids[1..].iter().all(|&id| tokenizer.token_kind(id) == TokenKind::Text));
/// assert_eq!(tokenizer.decode(&ids[1..], SpecialTokens::Keep), "user\nWhat does <|im_end|> do?");
/// # Ok::<(), lm_tokenizer::Error>(())
/// ```
pub struct Tokenizer {
    pub(crate) inner: tokenizers::Tokenizer,
    /// Added tokens searched for in the text as written.
    pub(crate) written: AddedTokens,
    /// Added tokens searched for after normalisation.
    pub(crate) normalized: AddedTokens,
    table: Arc<TokenTable>,
    end_ids: Arc<[TokenId]>,
    logits_width: usize,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. The tokenizer has no end-of-sequence ids yet; its logits width is its
    /// vocabulary size.
    ///
    /// Truncation and padding settings of the file are dropped: they belong to training batches.
    ///
    /// # Errors
    /// [`lm_formats::Error::Json`] and [`Error::Library`] for a file that the tokenizer library rejects,
    /// [`Error::Unsupported`] for a decoder whose exact bytes per token are unknown, or ids that are too
    /// high.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let spelling = Spelling::from_decoder(Head::read(json)?.decoder)?;
        let mut inner = guarded(|| tokenizers::Tokenizer::from_bytes(json))?;
        inner.with_truncation(None).map_err(Error::Library)?.with_padding(None);
        Self::from_library(inner, &spelling, &[])
    }

    /// Writes the tokenizer as a `tokenizer.json`: its vocabulary, merges, added tokens, normaliser,
    /// pre-tokenizer, post-processor and decoder. End-of-sequence ids and the logits width are in other
    /// files. Of several tokens of a GGUF file with the same text, only the last one is written.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails.
    pub fn to_json(&self) -> Result<String> {
        self.inner.to_string(false).map_err(Error::Library)
    }

    /// Wraps the library's tokenizer, whose decoder is not used. `duplicates` are ids that the library lacks,
    /// each with the id of the same text.
    pub(crate) fn from_library(
        inner: tokenizers::Tokenizer,
        spelling: &Spelling,
        duplicates: &[(TokenId, TokenId)],
    ) -> Result<Self> {
        let table = TokenTable::new(spelling, &inner, duplicates)?;
        let (mut written, mut normalized) = (AddedTokens::default(), AddedTokens::default());
        for (id, token) in inner.get_added_tokens_decoder() {
            match inner.get_normalizer().filter(|_| token.normalized) {
                Some(normalizer) => {
                    let mut pattern = NormalizedString::from(token.content.as_str());
                    guarded(|| normalizer.normalize(&mut pattern))?;
                    normalized.insert(id, pattern.get().to_owned(), token);
                }
                None if token.normalized => normalized.insert(id, token.content.clone(), token),
                None => written.insert(id, token.content.clone(), token),
            }
        }
        let logits_width = table.len();
        Ok(Self { inner, written, normalized, table: Arc::new(table), end_ids: Arc::new([]), logits_width })
    }

    /// Sets the end-of-sequence ids.
    #[must_use]
    pub fn with_end_ids(mut self, ids: impl Into<Arc<[TokenId]>>) -> Self {
        self.end_ids = ids.into();
        self
    }

    /// Sets the width of the model's logits, which can exceed the vocabulary.
    #[must_use]
    pub fn with_logits_width(mut self, width: usize) -> Self {
        self.logits_width = width;
        self
    }

    /// Encodes `text`, with its added tokens recognised. No BOS or EOS is added: a template writes its own
    /// BOS.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the text.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        self.encode_segments(&[TextSegment::Template(text)])
    }

    /// Encodes the concatenated segments; only the template's text can spell an added token.
    ///
    /// Ordinary text merges across segment borders: where no added token touches content, the ids are those
    /// of [`Tokenizer::encode`] of the concatenated text.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the text.
    pub fn encode_segments(&self, segments: &[TextSegment<'_>]) -> Result<Vec<TokenId>> {
        let text: String = segments.iter().map(|segment| segment.text()).collect();
        let template = template_ranges(segments);
        let in_template = |range: Range<usize>| {
            let before = template.partition_point(|part| part.end < range.end);
            template.get(before).is_some_and(|part| part.start <= range.start)
        };
        guarded(|| self.encode_where(text, in_template))
    }

    /// Encodes a separate text with the tokens that the file's post-processor adds, such as BOS or EOS.
    /// Embedding models and raw prompts expect them; a conversation gets its own from the chat template. A
    /// GGUF file without a `tokenizer.json` adds those of its keys `add_bos_token` and `add_eos_token`.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the text.
    pub fn encode_with_special_tokens(&self, text: TextSegment<'_>) -> Result<Vec<TokenId>> {
        self.encode_separate(&[text], usize::MAX)
    }

    /// [`encode_with_special_tokens`](Self::encode_with_special_tokens) of the concatenated segments as one
    /// text, of which the end is cut off if there are more than `max_tokens`.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the text.
    pub fn encode_separate(&self, segments: &[TextSegment<'_>], max_tokens: usize) -> Result<Vec<TokenId>> {
        let mut ids = self.encode_segments(segments)?;
        let Some(processor) = self.inner.get_post_processor() else {
            ids.truncate(max_tokens);
            return Ok(ids);
        };
        ids.truncate(max_tokens.saturating_sub(processor.added_tokens(false)));
        // Post-processors read only the number of tokens, not texts and offsets.
        let tokens = ids.into_iter().map(|id| Token::new(id, String::new(), (0, 0))).collect();
        let encoding = guarded(|| self.inner.post_process(Encoding::from_tokens(tokens, 0), None, true))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Encodes two texts as one input of a cross-encoder, with the tokens that the file's post-processor puts
    /// around and between them. If there are more than `max_tokens`, the end of the longer text is cut off,
    /// and of both where that is not enough.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the texts.
    pub fn encode_pair(&self, texts: [TextSegment<'_>; 2], max_tokens: usize) -> Result<TextPair> {
        let [mut first, mut second] =
            [self.encode_segments(&texts[..1])?, self.encode_segments(&texts[1..])?];
        let processor = self.inner.get_post_processor();
        let added = processor.map_or(0, |processor| processor.added_tokens(true));
        let most = max_tokens.saturating_sub(added);
        let kept = kept_lengths([first.len(), second.len()], most);
        first.truncate(kept[0]);
        second.truncate(kept[1]);
        let encoding = |ids: Vec<TokenId>, ty: u32| {
            let tokens = ids.into_iter().map(|id| Token::new(id, String::new(), (0, 0))).collect();
            Encoding::from_tokens(tokens, ty)
        };
        let (first, second) = (encoding(first, 0), encoding(second, 1));
        let pair = guarded(|| self.inner.post_process(first, Some(second), true))?;
        let second = pair.get_type_ids().iter().position(|&ty| ty == 1);
        Ok(TextPair { ids: pair.get_ids().to_vec(), second })
    }

    /// Encodes a raw prompt: [`encode_with_special_tokens`](Self::encode_with_special_tokens), with the added
    /// tokens in its text recognised. A BOS token that the text spells itself is not added again.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails on the text.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>> {
        let mut ids = self.encode_with_special_tokens(TextSegment::Template(text))?;
        let spelled = self.prefix_ids()?.len();
        if spelled > 0 && ids.len() >= 2 * spelled && ids[..spelled] == ids[spelled..2 * spelled] {
            ids.drain(..spelled);
        }
        Ok(ids)
    }

    /// Tokens that the file's post-processor adds before a separate text: BOS, or none.
    ///
    /// # Errors
    /// [`Error::Library`] when the tokenizer library fails.
    pub fn prefix_ids(&self) -> Result<Vec<TokenId>> {
        let text = self.encode("a")?;
        let ids = self.encode_with_special_tokens(TextSegment::Template("a"))?;
        let start = ids.windows(text.len().max(1)).position(|window| window == text);
        Ok(ids[..start.unwrap_or(0)].to_vec())
    }

    /// Decodes `ids`. Invalid UTF-8 becomes U+FFFD; ids without text produce nothing.
    ///
    /// A SentencePiece tokenizer's leading space is dropped, as its decoder specifies.
    pub fn decode(&self, ids: &[TokenId], special: SpecialTokens) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            if special == SpecialTokens::Keep || self.token_kind(id) != TokenKind::Special {
                bytes.extend_from_slice(self.token_bytes(id));
            }
        }
        let spaces = bytes.iter().take(self.table.leading_spaces).take_while(|&&byte| byte == b' ').count();
        String::from_utf8_lossy(&bytes[spaces..]).into_owned()
    }

    /// Creates a decoder that takes ids one by one.
    pub fn stream_decoder(&self) -> StreamDecoder {
        StreamDecoder::new(self.table.clone(), self.end_ids.clone())
    }

    /// Exact bytes of `id` inside a text, possibly part of a character; empty for an id without text.
    pub fn token_bytes(&self, id: TokenId) -> &[u8] {
        self.table.bytes(id)
    }

    /// Kind of `id`; [`TokenKind::Text`] for an id outside the vocabulary.
    pub fn token_kind(&self, id: TokenId) -> TokenKind {
        self.table.kind(id)
    }

    /// Ids of the added tokens, special ones included.
    pub fn added_tokens(&self) -> impl Iterator<Item = TokenId> {
        (0..self.vocab_size() as TokenId).filter(|id| self.token_kind(*id) != TokenKind::Text)
    }

    /// Id of the added token or vocabulary entry with this text, in the tokenizer's own alphabet.
    pub fn token_id(&self, text: &str) -> Option<TokenId> {
        self.inner.token_to_id(text)
    }

    /// End-of-sequence ids.
    pub fn end_ids(&self) -> &[TokenId] {
        &self.end_ids
    }

    /// Width of the model's logits; ids from [`Tokenizer::vocab_size`] on have no text.
    pub fn logits_width(&self) -> usize {
        self.logits_width
    }

    /// Number of ids: the highest id plus one, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.table.len()
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("logits_width", &self.logits_width)
            .field("end_ids", &self.end_ids)
            .finish_non_exhaustive()
    }
}

/// Byte ranges of the template's text in the concatenated text; adjacent ranges are merged.
fn template_ranges(segments: &[TextSegment<'_>]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for segment in segments {
        let range = at..at + segment.text().len();
        at = range.end;
        match (segment, ranges.last_mut()) {
            (TextSegment::Content(_), _) => {}
            (TextSegment::Template(_), Some(last)) if last.end == range.start => last.end = range.end,
            (TextSegment::Template(_), _) => ranges.push(range),
        }
    }
    ranges
}

/// Lengths to which two texts are cut, at most `most` together: the `longest_first` of the library.
fn kept_lengths([first, second]: [usize; 2], most: usize) -> [usize; 2] {
    if first + second <= most {
        return [first, second];
    }
    let (mut shorter, mut longer) = (first.min(second), 0);
    if shorter <= most {
        longer = shorter.max(most - shorter);
    }
    if shorter > most || shorter + longer > most {
        shorter = most / 2;
        longer = shorter + most % 2;
    }
    if first > second { [longer, shorter] } else { [shorter, longer] }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn longer_text_of_a_pair_is_cut() {
        for (lengths, most, kept) in [
            ([3, 4], 7, [3, 4]),
            ([3, 9], 8, [3, 5]),
            ([9, 3], 8, [5, 3]),
            ([9, 8], 7, [4, 3]),
            ([8, 8], 7, [3, 4]),
            ([20, 30], 7, [3, 4]),
            ([0, 5], 0, [0, 0]),
        ] {
            assert_eq!(kept_lengths(lengths, most), kept, "{lengths:?}");
        }
    }

    #[test]
    fn post_processor_surrounds_the_text() {
        let single = |items: Value| {
            let ids = |name: &str, id: TokenId| json!({"id": name, "ids": [id], "tokens": [name]});
            json!({"type": "TemplateProcessing", "single": items, "pair": items,
                "special_tokens": {"<|endoftext|>": ids("<|endoftext|>", 274), "<|im_end|>": ids("<|im_end|>", 276)}})
        };
        let token = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
        let template = single(json!([token("<|endoftext|>"), text, token("<|im_end|>")]));
        let sequence = json!({"type": "Sequence", "processors": [byte_level, single(json!([text, token("<|endoftext|>")]))]});
        let roberta = json!({"type": "RobertaProcessing", "sep": ["<|im_end|>", 276], "cls": ["<|endoftext|>", 274],
            "trim_offsets": true, "add_prefix_space": true});
        for (processor, added) in
            [(Value::Null, 0), (byte_level.clone(), 0), (template, 2), (sequence, 1), (roberta, 2)]
        {
            let mut file: Value = serde_json::from_str(&crate::testing::tokenizer_json()).expect("JSON");
            file["post_processor"] = processor.clone();
            let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).expect("a tokenizer");
            for text in ["", " the world", "hello"] {
                let expected = tokenizer.inner.encode(text, true).expect("it encodes").get_ids().to_vec();
                let segment = TextSegment::Content(text);
                let got = tokenizer.encode_with_special_tokens(segment).expect("it encodes");
                assert_eq!(got, expected, "{processor}: {text:?}");
                let plain = tokenizer.encode_segments(&[segment]).expect("it encodes");
                assert_eq!(got.len(), plain.len() + added, "{processor}: {text:?}");
            }
        }
    }
}
