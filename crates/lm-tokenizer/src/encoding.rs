//! The tokenizer library's pipeline, step by step, with added tokens only where they are allowed.

use std::ops::Range;

use tokenizers::normalizer::Range as Span;
use tokenizers::{Model, NormalizedString, Normalizer, OffsetType, PreTokenizedString, PreTokenizer, Token};

use crate::{TokenId, TokenKind, Tokenizer, added_tokens};

impl Tokenizer {
    /// Runs the library's pipeline with added tokens only where `allowed` accepts their bytes of `text`.
    pub(crate) fn encode_where(
        &self,
        text: String,
        allowed: impl Fn(Range<usize>) -> bool,
    ) -> tokenizers::Result<Vec<TokenId>> {
        let mut pieces = PreTokenizedString::from(text);
        pieces.split(|_, piece| {
            let found = self.written.find(piece.get(), &allowed);
            split_at(&piece, found)
        })?;
        pieces.split(|_, mut piece| {
            if let Some(normalizer) = self.inner.get_normalizer() {
                normalizer.normalize(&mut piece)?;
            }
            let found = self.normalized.find(piece.get(), |range| {
                piece.slice(Span::Normalized(range)).is_some_and(|token| {
                    let (start, end) = token.offsets_original();
                    allowed(start..end)
                })
            });
            split_at(&piece, found)
        })?;
        if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces)?;
        }
        pieces.tokenize(|piece| self.tokenize_piece(piece, &allowed))?;
        Ok(pieces.into_encoding(None, 0, OffsetType::None)?.get_ids().to_vec())
    }

    /// Encodes a piece of text with the model, without added tokens in content.
    ///
    /// Some vocabularies reach added tokens from plain text: those of Unigram models, and those whose added
    /// tokens are ordinary words. There the text is split inside the token, until no such token is left.
    /// Those without control function stay ([`added_tokens::is_text`]).
    fn tokenize_piece(
        &self,
        piece: &NormalizedString,
        allowed: &impl Fn(Range<usize>) -> bool,
    ) -> tokenizers::Result<Vec<Token>> {
        let model = self.inner.get_model();
        let is_forged = |token: &Token, start: usize| {
            let kind = self.token_kind(token.id);
            kind != TokenKind::Text
                && !added_tokens::is_text(self.token_bytes(token.id), kind == TokenKind::Special)
                && piece.slice(Span::Normalized(start + token.offsets.0..start + token.offsets.1)).is_none_or(
                    |text| {
                        let (start, end) = text.offsets_original();
                        !allowed(start..end)
                    },
                )
        };
        let mut tokens = Vec::new();
        let whole = 0..piece.get().len();
        let mut parts = Vec::from([whole]);
        while let Some(part) = parts.pop() {
            let text = &piece.get()[part.clone()];
            let found = model.tokenize(text)?;
            // Split after the first character of each forged token; single-character ones are kept.
            let mut cuts = Vec::new();
            for token in found.iter().filter(|token| is_forged(token, part.start)) {
                let (start, end) = token.offsets;
                // The library computes wrong offsets where a vocabulary gives one id to several tokens.
                let spelled = text.get(start..end).ok_or("a token does not lie on characters")?;
                cuts.extend(spelled.char_indices().nth(1).map(|(second, _)| part.start + start + second));
            }
            if cuts.is_empty() {
                tokens.extend(found);
                continue;
            }
            let borders: Vec<usize> = [&[part.start][..], &cuts, &[part.end]].concat();
            parts.extend(borders.windows(2).rev().map(|part| part[0]..part[1]));
        }
        Ok(tokens)
    }
}

/// Splits `piece` at the found tokens: tokens have their id, the text between them has none.
fn split_at(
    piece: &NormalizedString,
    found: Vec<added_tokens::Match>,
) -> tokenizers::Result<Vec<(NormalizedString, Option<Vec<Token>>)>> {
    let slice =
        |range| piece.slice(Span::Normalized(range)).ok_or("an added token does not lie on characters");
    let mut parts = Vec::with_capacity(found.len() * 2 + 1);
    let mut at = 0;
    for token in found {
        if at < token.range.start {
            parts.push((slice(at..token.range.start)?, None));
        }
        at = token.range.end;
        let part = slice(token.range)?;
        let text = part.get().to_owned();
        let offsets = (0, text.len());
        parts.push((part, Some(vec![Token::new(token.id, text, offsets)])));
    }
    if at < piece.get().len() {
        parts.push((slice(at..piece.get().len())?, None));
    }
    Ok(parts)
}
