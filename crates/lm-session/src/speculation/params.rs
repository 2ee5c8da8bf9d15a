//! Settings of speculative decoding.

/// Speculative decoding by prompt lookup: the tokens after an earlier occurrence of the last tokens, in the
/// prompt or in the output, run in one step with the last token. If none is profitable, a draft model drafts,
/// if set ([`EngineSettings::draft_model`](crate::EngineSettings::draft_model)).
///
/// Each row is sampled as without speculation, in order, until a sampled token differs from the drafted one.
/// So the output is that of plain decoding, token for token and for every seed (on a GPU: where logits are
/// equal within rounding). A step drafts only as many tokens as are profitable: those whose measured
/// acceptance is above the measured cost of a row. Models with recurrent states do not speculate, because a
/// state cannot be rolled back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// Maximum number of draft tokens of a step, at most 64. 0: no speculation. Default 8.
    pub max_draft: usize,
    /// Minimum number of last tokens with an earlier occurrence. Default 2.
    pub min_match: usize,
    /// Minimum probability of acceptance of a draft token. `None` (the default): the cost of a row relative
    /// to a step, as measured by the engine, times the number of sequences that decode.
    pub break_even: Option<f32>,
}

impl Speculation {
    /// No speculation.
    pub const OFF: Self = Self { max_draft: 0, min_match: 2, break_even: None };
}

impl Default for Speculation {
    fn default() -> Self {
        Self { max_draft: 8, ..Self::OFF }
    }
}
