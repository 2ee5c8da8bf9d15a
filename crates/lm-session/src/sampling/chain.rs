//! Chain of a request's logits filters, in their fixed order.

use std::sync::Arc;

use super::{
    FilterFactory, History, LogitsFilter, TokenLogits, dry, logit_bias, min_p, no_repeat_ngram, penalties,
    suppress_tokens, temperature, top_k, top_n_sigma, top_p, typical, xtc,
};
use crate::sampling::SamplerParams;
use lm_tokenizer::{TokenId, Tokenizer};

/// A filter and the parameters that enable it.
pub(super) struct FilterEntry {
    /// Names of the parameters.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests' messages"))]
    pub name: &'static str,
    /// Builds the filter; `None` when the parameters leave it off.
    pub build: fn(&FilterContext<'_>) -> Option<Box<dyn LogitsFilter>>,
}

/// Inputs of a filter's constructor.
pub(super) struct FilterContext<'a> {
    pub params: &'a SamplerParams,
    pub tokenizer: &'a Arc<Tokenizer>,
}

/// Filters that change or mask single tokens, in execution order.
pub(super) const TOKEN_FILTERS: &[FilterEntry] = &[
    FilterEntry { name: "repetition_penalty", build: penalties::repetition },
    FilterEntry { name: "presence_penalty, frequency_penalty", build: penalties::presence_and_frequency },
    FilterEntry { name: "dry_multiplier", build: dry::filter },
    FilterEntry { name: "no_repeat_ngram_size", build: no_repeat_ngram::filter },
    FilterEntry { name: "suppress_tokens", build: suppress_tokens::filter },
    FilterEntry { name: "logit_bias", build: logit_bias::filter },
];

/// Temperature and truncation of the distribution, in execution order, after the user-defined filters; greedy
/// sampling has none. Up to `typical_p` the order is that of transformers' `generate`.
pub(super) const DISTRIBUTION_FILTERS: &[FilterEntry] = &[
    FilterEntry { name: "temperature", build: temperature::filter },
    FilterEntry { name: "top_k", build: top_k::filter },
    FilterEntry { name: "top_p", build: top_p::filter },
    FilterEntry { name: "min_p", build: min_p::filter },
    FilterEntry { name: "typical_p", build: typical::filter },
    FilterEntry { name: "top_n_sigma", build: top_n_sigma::filter },
    FilterEntry { name: "xtc_probability", build: xtc::filter },
];

/// Logits filters of one generation, which run in sequence.
///
/// ```
/// use std::sync::Arc;
/// use lm_session::{Chain, History, SamplerParams, TokenLogits, testing};
///
/// let params = SamplerParams { temperature: 1.0, top_k: 2, ..SamplerParams::default() };
/// let mut chain = Chain::new(&params, &Arc::new(testing::tokenizer()));
/// let mut logits = TokenLogits::new(&[0.5, 3.0, 2.0])?;
/// chain.apply(&mut logits, &History::default());
/// assert_eq!(logits.ids(), [1, 2]);
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Debug)]
pub struct Chain {
    filters: Vec<Box<dyn LogitsFilter>>,
    /// Pending user-defined filters, and their index among the others.
    factories: Vec<FilterFactory>,
    custom: usize,
    /// Number of output tokens seen by the filters; `None` before the first step.
    accepted: Option<usize>,
}

impl Chain {
    /// Creates the filters that `params` enable, in this order: repetition penalty, presence and frequency
    /// penalty, DRY, no-repeat n-gram, suppressed tokens, logit bias, [`SamplerParams::filters`],
    /// temperature, top-k, top-p, min-p, typical, top-n-sigma, XTC.
    ///
    /// In a generation, tokens forbidden by a constraint are masked before and ignored by all filters. At
    /// temperature 0 the filters from the temperature on are omitted. Random filters use seed 0 without
    /// [`SamplerParams::seed`].
    pub fn new(params: &SamplerParams, tokenizer: &Arc<Tokenizer>) -> Self {
        let context = FilterContext { params, tokenizer };
        let build = |entries: &[FilterEntry]| -> Vec<_> {
            entries.iter().filter_map(|entry| (entry.build)(&context)).collect()
        };
        let mut filters = build(TOKEN_FILTERS);
        let custom = filters.len();
        if !params.is_greedy() {
            filters.extend(build(DISTRIBUTION_FILTERS));
        }
        Self { filters, factories: params.filters.clone(), custom, accepted: None }
    }

    /// Runs every filter on the logits of the token after `history`.
    ///
    /// Calls of one generation pass growing histories. If a history has fewer output tokens than the last
    /// one, the filters start again with its prompt.
    pub fn apply(&mut self, logits: &mut TokenLogits, history: &History<'_>) {
        let accepted = self.accepted.filter(|&accepted| accepted <= history.generated.len());
        let known = accepted.unwrap_or_else(|| {
            self.begin(history.prompt);
            0
        });
        for filter in &mut self.filters {
            history.generated[known..].iter().for_each(|&token| filter.accepted(token));
            filter.apply(logits, history);
        }
        self.accepted = Some(history.generated.len());
    }

    fn begin(&mut self, prompt: &[TokenId]) {
        let custom = std::mem::take(&mut self.factories);
        self.filters.splice(self.custom..self.custom, custom.iter().map(FilterFactory::create));
        self.filters.iter_mut().for_each(|filter| filter.begin(prompt));
    }

    /// Returns true if no filter is enabled.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.factories.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    /// Parameters that enable every filter.
    fn all_on() -> SamplerParams {
        SamplerParams {
            temperature: 0.7,
            top_k: 3,
            top_p: 0.8,
            min_p: 0.1,
            typical_p: 0.9,
            top_n_sigma: 2.0,
            xtc_probability: 0.5,
            dry_multiplier: 0.8,
            no_repeat_ngram_size: 2,
            suppress_tokens: vec![5],
            repetition_penalty: 1.3,
            presence_penalty: 0.4,
            frequency_penalty: -0.2,
            logit_bias: vec![(1, 5.0), (2, f32::NEG_INFINITY)],
            ..SamplerParams::default()
        }
    }

    #[test]
    fn default_parameters_enable_no_filter() {
        assert!(Chain::new(&SamplerParams::default(), &tokenizer()).is_empty());
    }

    #[test]
    fn greedy_sampling_keeps_the_distribution() {
        let greedy = SamplerParams { temperature: 0.0, ..all_on() };
        let chain = Chain::new(&greedy, &tokenizer());
        assert_eq!(chain.filters.len(), TOKEN_FILTERS.len());
    }

    fn tokenizer() -> Arc<Tokenizer> {
        Arc::new(crate::testing::tokenizer())
    }

    fn entries() -> impl Iterator<Item = &'static FilterEntry> {
        TOKEN_FILTERS.iter().chain(DISTRIBUTION_FILTERS)
    }

    #[test]
    fn every_filter_can_be_enabled() {
        for entry in entries() {
            let context = FilterContext { params: &all_on(), tokenizer: &tokenizer() };
            assert!((entry.build)(&context).is_some(), "{}", entry.name);
        }
    }

    #[test]
    fn filters_are_in_documented_order() {
        let names: Vec<_> = entries().map(|entry| entry.name).collect();
        let order = "repetition_penalty presence_penalty, frequency_penalty dry_multiplier no_repeat_ngram_size \
                     suppress_tokens logit_bias temperature top_k top_p min_p typical_p top_n_sigma xtc_probability";
        assert_eq!(names.join(" "), order);
    }

    /// Records its calls.
    #[derive(Debug)]
    struct Recorder(Arc<Mutex<Vec<String>>>);

    impl Recorder {
        fn note(&self, call: String) {
            self.0.lock().unwrap().push(call);
        }
    }

    impl LogitsFilter for Recorder {
        fn begin(&mut self, prompt: &[TokenId]) {
            self.note(format!("begin {prompt:?}"));
        }

        fn accepted(&mut self, token: TokenId) {
            self.note(format!("accepted {token}"));
        }

        fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
            self.note(format!("apply {:?}", logits.values()));
        }
    }

    #[test]
    fn custom_filter_runs_between_bias_and_temperature() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let recorder = calls.clone();
        let params = SamplerParams {
            temperature: 0.5,
            logit_bias: vec![(0, 1.0)],
            filters: vec![FilterFactory::new(move || Recorder(recorder.clone()))],
            ..SamplerParams::default()
        };
        let mut chain = Chain::new(&params, &tokenizer());
        let mut apply = |generated: &[TokenId]| {
            let mut logits = TokenLogits::new(&[1.0, 5.0]).unwrap();
            chain.apply(&mut logits, &History { prompt: &[7], generated });
            assert_eq!(logits.values(), [-6.0, 0.0]);
            std::mem::take(&mut *calls.lock().unwrap()).join(", ")
        };
        assert_eq!(apply(&[]), "begin [7], apply [2.0, 5.0]");
        assert_eq!(apply(&[3]), "accepted 3, apply [2.0, 5.0]");
        assert_eq!(apply(&[3]), "apply [2.0, 5.0]", "a token was rejected");
        assert_eq!(apply(&[3, 4, 4]), "accepted 4, accepted 4, apply [2.0, 5.0]");
        assert_eq!(apply(&[8]), "begin [7], accepted 8, apply [2.0, 5.0]", "another generation");
    }

    /// Reference implementation of the filters in the documented order, in f64.
    fn plain(row: &[f32], history: &History<'_>, params: &SamplerParams) -> Vec<(u32, f64)> {
        let count = |ids: &[u32], id: u32| ids.iter().filter(|&&seen| seen == id).count() as f64;
        let mut logits: Vec<(u32, f64)> = (0..).zip(row.iter().map(|&value| f64::from(value))).collect();
        for (id, value) in &mut logits {
            let generated = count(history.generated, *id);
            if count(history.prompt, *id) + generated > 0.0 {
                let penalty = f64::from(params.repetition_penalty);
                *value = if *value < 0.0 { *value * penalty } else { *value / penalty };
            }
            if generated > 0.0 {
                *value -=
                    f64::from(params.presence_penalty) + f64::from(params.frequency_penalty) * generated;
            }
            for (_, bias) in params.logit_bias.iter().filter(|(biased, _)| biased == id) {
                *value += f64::from(*bias);
            }
        }
        let highest = |logits: &[(u32, f64)]| logits.iter().map(|(_, value)| *value).fold(f64::MIN, f64::max);
        let max = highest(&logits);
        logits.iter_mut().for_each(|(_, value)| *value = (*value - max) / f64::from(params.temperature));
        logits.retain(|(_, value)| value.is_finite());
        logits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        logits.truncate(params.top_k);
        let mass: f64 = logits.iter().map(|(_, value)| value.exp()).sum();
        let mut before = 0.0;
        logits.retain(|(_, value)| {
            let keep = before < f64::from(params.top_p) * mass;
            before += value.exp();
            keep
        });
        logits.retain(|(_, value)| value.exp() >= f64::from(params.min_p));
        logits.sort_by_key(|(id, _)| *id);
        logits
    }

    #[test]
    fn chain_applies_filters_in_documented_order() {
        let history = History { prompt: &[0, 3, 3, 9], generated: &[1, 4, 4, 4, 9] };
        let tokenizer = tokenizer();
        // Random rows: swapping two neighbours that do not commute changes the result.
        for seed in 0..200u32 {
            let number = |id: u32| seed.wrapping_mul(31).wrapping_add(id.wrapping_mul(2_654_435_761)) % 997;
            let row: Vec<f32> = (0..12).map(|id| number(id) as f32 / 150.0 - 3.0).collect();
            let params = SamplerParams {
                temperature: 0.6,
                top_k: 5,
                top_p: 0.75,
                min_p: 0.2,
                repetition_penalty: 1.7,
                presence_penalty: 0.9,
                frequency_penalty: 0.35,
                logit_bias: vec![(4, 2.5), (7, 1.5), (2, f32::NEG_INFINITY)],
                ..SamplerParams::default()
            };
            let mut logits = TokenLogits::new(&row).unwrap();
            Chain::new(&params, &tokenizer).apply(&mut logits, &history);
            let wanted = plain(&row, &history, &params);
            let ids: Vec<u32> = wanted.iter().map(|(id, _)| *id).collect();
            assert_eq!(logits.ids(), ids, "seed {seed}");
            for (value, (id, wanted)) in logits.values().iter().zip(wanted) {
                assert!(
                    (f64::from(*value) - wanted).abs() < 1e-4,
                    "seed {seed}, token {id}: {value}, {wanted}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn filters_keep_masks_and_leave_a_token(
            row in prop::collection::vec(prop_oneof![3 => -20f32..20.0, 1 => Just(f32::NEG_INFINITY)], 1..20),
            prompt in prop::collection::vec(0u32..20, 0..8),
            generated in prop::collection::vec(0u32..20, 0..8),
            top_k in 0usize..6, top_p in 0f32..1.2, min_p in 0f32..1.0, temperature in 0.01f32..3.0,
            repetition_penalty in 0.2f32..3.0, presence_penalty in -2f32..2.0, frequency_penalty in -2f32..2.0,
            bias in -9f32..9.0,
            typical_p in 0f32..1.2, top_n_sigma in 0f32..3.0, xtc_threshold in 0f32..0.6, no_repeat_ngram_size in 0usize..4,
            dry_multiplier in 0f32..3.0,
        ) {
            let params = SamplerParams {
                temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
                typical_p, top_n_sigma, xtc_probability: 0.9, xtc_threshold, no_repeat_ngram_size, dry_multiplier,
                dry_allowed_length: 1,
                logit_bias: vec![(0, bias), (7, -bias)],
                ..SamplerParams::default()
            };
            let tokenizer = tokenizer();
            let context = FilterContext { params: &params, tokenizer: &tokenizer };
            let history = History { prompt: &prompt, generated: &generated };
            let alive: Vec<u32> = (0..row.len() as u32).filter(|&id| row[id as usize].is_finite()).collect();
            for mut filter in entries().filter_map(|entry| (entry.build)(&context)) {
                let mut logits = TokenLogits::new(&row).unwrap();
                filter.begin(&prompt);
                generated.iter().for_each(|&token| filter.accepted(token));
                filter.apply(&mut logits, &history);
                let left: Vec<u32> = logits.ids().iter().zip(logits.values())
                    .filter_map(|(&id, value)| value.is_finite().then_some(id)).collect();
                prop_assert!(left.iter().all(|id| alive.contains(id)), "{filter:?} revived a token");
                prop_assert!(left.is_empty() == alive.is_empty(), "{filter:?} masked everything");
                prop_assert!(logits.ids().is_sorted() && logits.values().iter().all(|v| *v < f32::INFINITY));
            }
        }
    }
}
