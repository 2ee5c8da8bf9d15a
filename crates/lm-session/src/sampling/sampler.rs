//! Sampler of one request.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::argmax::{argmax, masked_argmax};
use super::logits::check;
use super::multinomial::multinomial;
use super::{Chain, History, TokenLogits};
use crate::constraint::TokenMask;
use crate::error::{Error, Result};
use crate::sampling::SamplerParams;
use lm_tokenizer::{TokenId, Tokenizer};

/// Filters and random number generator of one generation: independent of other requests.
#[derive(Debug)]
pub(crate) struct Sampler {
    chain: Chain,
    choice: Choice,
    /// Buffer for the logits, kept between steps.
    logits: TokenLogits,
}

#[derive(Debug)]
enum Choice {
    Greedy,
    Random { seed: u64, rng: Box<ChaCha8Rng> },
}

impl Sampler {
    /// Creates a sampler; draws its seed if `params` have none.
    ///
    /// # Errors
    /// [`Error::NoSeed`].
    pub fn new(params: &SamplerParams, tokenizer: &Arc<Tokenizer>) -> Result<Self> {
        let params = params.seeded()?;
        let choice = match params.seed.filter(|_| !params.is_greedy()) {
            None => Choice::Greedy,
            Some(seed) => Choice::Random { seed, rng: Box::new(ChaCha8Rng::seed_from_u64(seed)) },
        };
        Ok(Self { chain: Chain::new(&params, tokenizer), choice, logits: TokenLogits::default() })
    }

    /// Seed of the random numbers; `None` when greedy.
    pub fn seed(&self) -> Option<u64> {
        match self.choice {
            Choice::Greedy => None,
            Choice::Random { seed, .. } => Some(seed),
        }
    }

    /// Returns true if the sampled token is the highest logit of the model.
    pub fn is_argmax(&self) -> bool {
        self.chain.is_empty() && matches!(self.choice, Choice::Greedy)
    }

    /// Samples the token after `history` from its row of logits and a constraint's mask. Draws one random
    /// number, or none when greedy.
    pub fn sample(
        &mut self,
        row: &[f32],
        mask: Option<&TokenMask>,
        history: &History<'_>,
    ) -> Result<TokenId> {
        let no_candidate = || Error::NoCandidate { tokens: row.len() };
        if self.is_argmax() {
            check(row)?;
            let best = mask.map_or_else(|| argmax(row), |mask| masked_argmax(row, mask));
            return best.map(|index| index as TokenId).ok_or_else(no_candidate);
        }
        match mask {
            Some(mask) => self.logits.load_allowed(row, mask)?,
            None => self.logits.load(row)?,
        }
        self.chain.apply(&mut self.logits, history);
        let token = match &mut self.choice {
            Choice::Greedy => argmax(self.logits.values()).map(|index| self.logits.ids()[index]),
            Choice::Random { rng, .. } => multinomial(&self.logits, unit_interval(rng.as_mut())),
        };
        token.ok_or_else(no_candidate)
    }
}

/// Uniform number in `[0, 1)` with 53 random bits.
pub(super) fn unit_interval(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(params: &SamplerParams) -> Sampler {
        Sampler::new(params, &Arc::new(crate::testing::tokenizer())).unwrap()
    }

    fn draw(params: &SamplerParams, row: &[f32], count: usize) -> Vec<TokenId> {
        let mut sampler = sampler(params);
        (0..count).map(|_| sampler.sample(row, None, &History::default()).unwrap()).collect()
    }

    #[test]
    fn greedy_takes_the_lowest_id_of_a_tie() {
        let row = [1.0, 5.0, 5.0, 2.0];
        assert_eq!(draw(&SamplerParams::default(), &row, 3), [1, 1, 1]);
        let biased = SamplerParams { logit_bias: vec![(3, 3.0), (2, -1.0)], ..Default::default() };
        assert_eq!(draw(&biased, &row, 2), [1, 1]);
    }

    #[test]
    fn greedy_sampling_ignores_truncation_filters() {
        let params = SamplerParams { top_k: 1, top_p: 0.1, min_p: 0.9, ..Default::default() };
        assert_eq!(draw(&params, &[1.0, 5.0, 5.0], 1), [1]);
    }

    #[test]
    fn seed_fixes_the_tokens() {
        let row = [0.0; 50];
        let params = |seed| SamplerParams { temperature: 1.0, seed: Some(seed), ..Default::default() };
        assert_eq!(draw(&params(3), &row, 20), draw(&params(3), &row, 20));
        assert_ne!(draw(&params(3), &row, 20), draw(&params(4), &row, 20));
    }

    #[test]
    fn drawn_seed_is_reported_and_repeats_the_tokens() {
        let row = [0.0; 50];
        let params = SamplerParams { temperature: 1.0, xtc_probability: 0.5, ..Default::default() };
        let draw_with = |mut sampler: Sampler| -> Vec<TokenId> {
            (0..20).map(|_| sampler.sample(&row, None, &History::default()).unwrap()).collect()
        };
        let (first, second) = (sampler(&params), sampler(&params));
        let seed = first.seed();
        assert!(seed.is_some() && seed != second.seed(), "{seed:?}");
        let drawn = draw_with(first);
        assert_ne!(drawn, draw_with(second));
        assert_eq!(drawn, draw(&SamplerParams { seed, ..params }, &row, 20));
        assert_eq!(sampler(&SamplerParams { seed: Some(3), ..Default::default() }).seed(), None, "greedy");
    }

    #[test]
    fn mask_limits_greedy_and_random_sampling() {
        let row: Vec<f32> = (0..200).map(|id| (id * 37 % 101) as f32 / 50.0).collect();
        for allowed in [vec![3], vec![0, 64, 65, 199], (10..190).collect()] {
            let mut mask = TokenMask::new(row.len());
            allowed.iter().for_each(|&id| mask.allow(id));
            let best =
                allowed.iter().copied().reduce(|a, b| if row[b as usize] > row[a as usize] { b } else { a });
            for (temperature, presence_penalty) in [(0.0, 0.0), (0.0, 0.5), (1.0, 0.0)] {
                let mut sampler =
                    sampler(&SamplerParams { temperature, presence_penalty, ..Default::default() });
                let id = sampler.sample(&row, Some(&mask), &History::default()).unwrap();
                assert!(mask.allows(id), "{id} of {allowed:?}");
                assert!(temperature > 0.0 || Some(id) == best, "{id}, expected {best:?}");
            }
        }
        let none =
            sampler(&SamplerParams::default()).sample(&row, Some(&TokenMask::new(200)), &History::default());
        assert!(matches!(none, Err(Error::NoCandidate { tokens: 200 })));
    }

    #[test]
    fn bad_logits_are_typed_errors() {
        for temperature in [0.0, 1.0] {
            let mut sampler = sampler(&SamplerParams { temperature, ..Default::default() });
            let history = History::default();
            let nan = sampler.sample(&[0.0, f32::NAN], None, &history).unwrap_err();
            assert!(matches!(nan, Error::InvalidLogit { token: 1, .. }), "{nan}");
            let masked = sampler.sample(&[f32::NEG_INFINITY; 3], None, &history).unwrap_err();
            assert!(matches!(masked, Error::NoCandidate { tokens: 3 }), "{masked}");
        }
    }
}
