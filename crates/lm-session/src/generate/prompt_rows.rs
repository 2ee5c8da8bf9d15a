//! Outputs of a prompt's rows: log probabilities and pooled hidden states, reduced piece by piece.

use lm_model::{CausalLm, Direction, Embeddings, Pooling};
use lm_tokenizer::TokenId;

use crate::error::Result;
use crate::sampling::{LogSoftmax, TokenLogprobs, check};

/// Rows of logits in memory at a time: 19 MB with 152k tokens.
const PIECE: usize = 32;

/// Reader of the hidden states of a prompt's rows, in order.
#[derive(Debug)]
pub(crate) struct PromptRows {
    /// Position of the next row.
    next: usize,
    /// Position after the last row.
    end: usize,
    output: PromptOutput,
    /// Number of most probable tokens to report with each.
    top: usize,
    /// Number of rows that are pooled.
    pooled_rows: usize,
    /// Tokens whose logits are the output.
    tokens: Vec<TokenId>,
    /// True if the classifier is applied to the pooled vector.
    classified: bool,
    /// First token of the second text of a pair.
    second_text: Option<usize>,
    /// True if no row may be cached: the model reads a text in one call.
    whole: bool,
}

/// Output of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PromptOutput {
    /// Log probabilities of the tokens after the first row read.
    Logprobs(Vec<TokenLogprobs>),
    /// Pooled hidden states, not normalised, or the logits of labels that a classifier computes from them.
    Vector(Vec<f32>),
    /// Logits of chosen tokens as the next one.
    Logits(Vec<f32>),
}

impl PromptRows {
    /// Reads the log probabilities of `ids[first..]`, with the `top` most probable tokens each, except for
    /// `ids[0]`.
    pub fn logprobs(ids: &[TokenId], first: usize, top: usize) -> Self {
        let output = PromptOutput::Logprobs(Vec::new());
        let (next, end) = (first.max(1) - 1, ids.len().saturating_sub(1));
        Self { top, ..Self::new(next, end, output) }
    }

    fn new(next: usize, end: usize, output: PromptOutput) -> Self {
        Self {
            next,
            end,
            output,
            top: 0,
            pooled_rows: 0,
            tokens: Vec::new(),
            classified: false,
            second_text: None,
            whole: false,
        }
    }

    /// Pools the hidden states of the rows of `ids` after the first `unpooled`; the last one is always among
    /// them.
    pub fn pooled(ids: &[TokenId], unpooled: usize, pooling: Pooling) -> Self {
        let last = ids.len() - 1;
        let first = unpooled.min(last);
        let (next, end) = match pooling {
            Pooling::Mean => (first, ids.len()),
            Pooling::Last => (last, ids.len()),
            Pooling::Cls => (first, first + 1),
        };
        let output = PromptOutput::Vector(Vec::new());
        Self { pooled_rows: end - next, ..Self::new(next, end, output) }
    }

    /// Pools the hidden states of the rows of `ids` and applies the model's classifier; `second` is the first
    /// token of the second text of a pair.
    pub fn classified(ids: &[TokenId], second: Option<usize>, pooling: Pooling) -> Self {
        Self { classified: true, second_text: second, ..Self::pooled(ids, 0, pooling) }
    }

    /// Sets the direction of the model that runs the prompt.
    pub fn for_direction(self, direction: Direction) -> Self {
        Self { whole: direction == Direction::Bidirectional, ..self }
    }

    /// Returns true if the output is a vector of the text, so that no token follows.
    pub fn is_pooled(&self) -> bool {
        matches!(self.output, PromptOutput::Vector(_))
    }

    /// First token of the second text of a pair.
    pub fn second_text(&self) -> Option<usize> {
        self.second_text
    }

    /// Reads the logits of `tokens` after the last of `ids`; -infinity for a token that the model lacks.
    pub fn next_logits(ids: &[TokenId], tokens: &[TokenId]) -> Self {
        let (end, output) = (ids.len(), PromptOutput::Logits(Vec::new()));
        Self { tokens: tokens.to_vec(), ..Self::new(end - 1, end, output) }
    }

    /// Maximum number of cached tokens at the start of the request.
    pub fn max_cached(&self) -> usize {
        if self.whole { 0 } else { self.next }
    }

    /// Rows to read among those of the positions from `cached_len` to `end`, counted from the first of them.
    pub fn rows(&self, cached_len: usize, end: usize) -> std::ops::Range<usize> {
        let first = self.next.max(cached_len);
        first - cached_len..self.end.min(end).max(first) - cached_len
    }

    /// Reads the hidden states of the next rows of `ids`.
    ///
    /// # Errors
    /// The errors of the output head; [`crate::Error::InvalidLogit`].
    pub fn read(&mut self, model: &dyn CausalLm, rows: &Embeddings, ids: &[TokenId]) -> Result<()> {
        let hidden_size = rows.hidden_size;
        for piece in rows.values.chunks(PIECE * hidden_size) {
            match &mut self.output {
                PromptOutput::Logprobs(scores) => {
                    let logits = model.head(Embeddings { values: piece.to_vec(), hidden_size })?;
                    for (row, &target) in logits.sequence(0).rows().zip(&ids[self.next + 1..]) {
                        check(row)?;
                        scores.push(LogSoftmax::new(row, None, self.top).of(row, target));
                        self.next += 1;
                    }
                }
                PromptOutput::Logits(values) => {
                    let logits = model.head(Embeddings { values: piece.to_vec(), hidden_size })?;
                    for row in logits.sequence(0).rows() {
                        check(row)?;
                        let logit = |&token: &TokenId| row.get(token as usize).copied();
                        values.extend(
                            self.tokens.iter().map(|token| logit(token).unwrap_or(f32::NEG_INFINITY)),
                        );
                        self.next += 1;
                    }
                }
                PromptOutput::Vector(sum) => {
                    sum.resize(hidden_size, 0.0);
                    let values = piece.chunks_exact(hidden_size).flat_map(|row| row.iter().enumerate());
                    values.for_each(|(index, value)| sum[index] += value);
                    self.next += piece.len() / hidden_size;
                }
            }
        }
        Ok(())
    }

    /// Returns true if all rows have been read.
    pub fn is_complete(&self) -> bool {
        self.next >= self.end
    }

    /// Returns the output.
    ///
    /// # Errors
    /// The errors of the classifier; [`crate::Error::InvalidLogit`] for a logit of it that is no number.
    pub fn finish(self, model: &dyn CausalLm) -> Result<PromptOutput> {
        let PromptOutput::Vector(mut values) = self.output else { return Ok(self.output) };
        values.iter_mut().for_each(|value| *value /= self.pooled_rows as f32);
        if self.classified {
            let hidden_size = values.len();
            values = model.classify(Embeddings { values, hidden_size })?.values;
            check(&values)?;
        }
        Ok(PromptOutput::Vector(values))
    }
}
