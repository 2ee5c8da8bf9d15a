//! Chain of a request's logits filters, in their fixed order.

use super::{
    History, LogitsFilter, TokenLogits, logit_bias, min_p, repetition_penalty, temperature, top_k, top_p,
};
use crate::SamplerParams;

/// A filter and the parameters that enable it.
pub(super) struct FilterEntry {
    /// Names of the parameters.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests' messages"))]
    pub name: &'static str,
    /// Builds the filter; `None` when the parameters leave it off.
    pub build: fn(&SamplerParams) -> Option<Box<dyn LogitsFilter>>,
}

/// All filters in execution order: changes of single tokens first, then the temperature, then the truncation of the distribution.
/// The order of the last four is that of transformers' `generate`.
pub(super) const FILTERS: &[FilterEntry] = &[
    FilterEntry { name: "repetition_penalty", build: repetition_penalty::repetition },
    FilterEntry {
        name: "presence_penalty, frequency_penalty",
        build: repetition_penalty::presence_and_frequency,
    },
    FilterEntry { name: "logit_bias", build: logit_bias::filter },
    FilterEntry { name: "temperature", build: temperature::filter },
    FilterEntry { name: "top_k", build: top_k::filter },
    FilterEntry { name: "top_p", build: top_p::filter },
    FilterEntry { name: "min_p", build: min_p::filter },
];

/// Logits filters that run in sequence.
///
/// ```
/// use lm_session::{Chain, History, SamplerParams, TokenLogits};
///
/// let chain = Chain::new(&SamplerParams { temperature: 1.0, top_k: 2, ..SamplerParams::default() });
/// let mut logits = TokenLogits::new(&[0.5, 3.0, 2.0])?;
/// chain.apply(&mut logits, &History::default());
/// assert_eq!(logits.ids(), [1, 2]);
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Chain {
    filters: Vec<Box<dyn LogitsFilter>>,
}

impl Chain {
    /// Creates the filters that `params` enable: repetition penalty, presence and frequency penalty, logit bias, temperature,
    /// top-k, top-p, min-p. At temperature 0 the last four are left out: they never remove the token with the highest logit.
    pub fn new(params: &SamplerParams) -> Self {
        Self { filters: FILTERS.iter().filter_map(|entry| (entry.build)(params)).collect() }
    }

    /// Adds a filter that runs before the others. A constraint's mask belongs here: masked tokens then take no part in top-k,
    /// top-p and min-p.
    pub fn with_first(mut self, filter: Box<dyn LogitsFilter>) -> Self {
        self.filters.insert(0, filter);
        self
    }

    /// Runs every filter.
    pub fn apply(&self, logits: &mut TokenLogits, history: &History<'_>) {
        for filter in &self.filters {
            filter.apply(logits, history);
        }
    }

    /// Returns true if no filter is enabled.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parameters that enable every filter.
    fn all_on() -> SamplerParams {
        SamplerParams {
            temperature: 0.7,
            top_k: 3,
            top_p: 0.8,
            min_p: 0.1,
            repetition_penalty: 1.3,
            presence_penalty: 0.4,
            frequency_penalty: -0.2,
            logit_bias: vec![(1, 5.0), (2, f32::NEG_INFINITY)],
            ..SamplerParams::default()
        }
    }

    #[test]
    fn default_parameters_switch_nothing_on() {
        assert!(Chain::new(&SamplerParams::default()).is_empty());
    }

    #[test]
    fn every_filter_can_be_switched_on() {
        for entry in FILTERS {
            assert!((entry.build)(&all_on()).is_some(), "{}", entry.name);
        }
    }

    #[test]
    fn filters_stand_in_the_documented_order() {
        let names: Vec<_> = FILTERS.iter().map(|entry| entry.name).collect();
        let order =
            "repetition_penalty presence_penalty, frequency_penalty logit_bias temperature top_k top_p min_p";
        assert_eq!(names.join(" "), order);
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
    fn the_chain_is_its_filters_in_the_documented_order() {
        let history = History { prompt: &[0, 3, 3, 9], generated: &[1, 4, 4, 4, 9] };
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
            Chain::new(&params).apply(&mut logits, &history);
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

    #[test]
    fn a_first_filter_masks_before_the_others_choose() {
        #[derive(Debug)]
        struct Mask;
        impl LogitsFilter for Mask {
            fn apply(&self, logits: &mut TokenLogits, _: &History<'_>) {
                logits.retain(|id, _| id != 1);
            }
        }
        let params = SamplerParams { temperature: 1.0, top_k: 1, ..SamplerParams::default() };
        let mut logits = TokenLogits::new(&[1.0, 9.0, 2.0]).unwrap();
        Chain::new(&params).with_first(Box::new(Mask)).apply(&mut logits, &History::default());
        assert_eq!(logits.ids(), [2]);
    }

    proptest! {
        #[test]
        fn no_filter_revives_a_masked_token_or_masks_all(
            row in prop::collection::vec(prop_oneof![3 => -20f32..20.0, 1 => Just(f32::NEG_INFINITY)], 1..20),
            prompt in prop::collection::vec(0u32..20, 0..8),
            generated in prop::collection::vec(0u32..20, 0..8),
            top_k in 0usize..6, top_p in 0f32..1.2, min_p in 0f32..1.0, temperature in 0.01f32..3.0,
            repetition_penalty in 0.2f32..3.0, presence_penalty in -2f32..2.0, frequency_penalty in -2f32..2.0,
            bias in -9f32..9.0,
        ) {
            let params = SamplerParams {
                temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
                logit_bias: vec![(0, bias), (7, -bias)],
                ..SamplerParams::default()
            };
            let history = History { prompt: &prompt, generated: &generated };
            let alive: Vec<u32> = (0..row.len() as u32).filter(|&id| row[id as usize].is_finite()).collect();
            for filter in FILTERS.iter().filter_map(|entry| (entry.build)(&params)) {
                let mut logits = TokenLogits::new(&row).unwrap();
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
