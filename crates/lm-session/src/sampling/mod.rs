//! Sampling: logits filters, then a random or greedy choice.

mod argmax;
mod chain;
mod dry;
mod factory;
mod logit_bias;
mod logits;
mod logprobs;
mod masked;
mod min_p;
mod multinomial;
mod no_repeat_ngram;
mod params;
mod penalties;
mod sampler;
mod smallest_set;
mod suffix_matches;
mod suppress_tokens;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;
mod weights;
mod xtc;

pub(crate) use argmax::argmax;
pub use chain::Chain;
use chain::FilterContext;
pub use factory::FilterFactory;
pub use logits::TokenLogits;
pub(crate) use logits::check;
pub(crate) use logprobs::LogSoftmax;
pub use logprobs::TokenLogprobs;
pub use masked::Masked;
pub use params::SamplerParams;
pub(crate) use sampler::Sampler;
pub(crate) use suffix_matches::SuffixMatches;

use lm_tokenizer::TokenId;

/// A filter that changes or masks logits before a token is drawn.
///
/// A filter cannot unmask a token; [`TokenLogits`] has no method for it. A filter that leaves one token
/// selects it. User-defined filters reach a generation through [`SamplerParams::filters`]; they run on the
/// engine's sampling threads, and a panic in one ends its request alone, with
/// [`Error::WorkerPanicked`](crate::Error::WorkerPanicked).
///
/// ```
/// use lm_session::{
///     FilterFactory, GenerateParams, History, LogitsFilter, SamplerParams, SessionConfig, TokenId, TokenLogits, testing,
/// };
///
/// /// Never repeats the last token.
/// #[derive(Debug, Default)]
/// struct NoEcho {
///     last: Option<TokenId>,
/// }
///
/// impl LogitsFilter for NoEcho {
///     fn begin(&mut self, prompt: &[TokenId]) {
///         self.last = prompt.last().copied();
///     }
///     fn accepted(&mut self, token: TokenId) {
///         self.last = Some(token);
///     }
///     fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
///         logits.retain(|id, _| Some(id) != self.last);
///     }
/// }
///
/// let engine = testing::scripted_engine(["aab"]); // The model would write "aab".
/// let filters = vec![FilterFactory::new(NoEcho::default)];
/// let sampler = SamplerParams { filters, ..SamplerParams::default() };
/// let mut session = engine.session(SessionConfig { sampler, ..SessionConfig::default() })?;
/// session.prefill(&[1])?;
/// let params = GenerateParams { max_output_tokens: Some(2), ..GenerateParams::default() };
/// let (text, _) = session.generate(params).into_text()?;
/// assert!(text.starts_with('a') && !text.starts_with("aa"), "{text:?}");
/// # Ok::<(), lm_session::Error>(())
/// ```
pub trait LogitsFilter: Send + std::fmt::Debug {
    /// Resets the filter to the start of an output after `prompt`. The default does nothing.
    fn begin(&mut self, prompt: &[TokenId]) {
        let _ = prompt;
    }

    /// Records a token of the output, sampled or forced. Called once for each, in order, before
    /// [`LogitsFilter::apply`] for a later token. The default does nothing.
    fn accepted(&mut self, token: TokenId) {
        let _ = token;
    }

    /// Applies the filter to the logits of the token after `history`. Called again with the same history when
    /// the sampled token is rejected because the constrained text could not end in time after it.
    fn apply(&mut self, logits: &mut TokenLogits, history: &History<'_>);
}

/// Tokens before the one to be sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History<'a> {
    /// Tokens of the session at the start of the generation.
    pub prompt: &'a [TokenId],
    /// Tokens of the output so far.
    pub generated: &'a [TokenId],
}

#[cfg(test)]
mod tests;
