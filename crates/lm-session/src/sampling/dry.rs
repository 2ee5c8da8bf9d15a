//! DRY repetition penalty ("don't repeat yourself").

use std::collections::HashMap;
use std::sync::Arc;

use super::suffix_matches::SuffixMatches;
use super::{FilterContext, History, LogitsFilter, TokenLogits};
use lm_tokenizer::{TokenId, Tokenizer};

/// Penalizes the tokens that would continue a sequence that occurred before, exponentially in its length.
///
/// If the last L tokens of prompt and output occurred before and were followed by a token there,
/// `multiplier * base^(L - allowed_length)` is subtracted from the logit of that token, for the greatest such
/// L, provided that L is at least `allowed_length`. A sequence does not extend back over a sequence breaker,
/// and a token that contains one is not penalized.
///
/// # Source
/// P. E. Weidmann, oobabooga/text-generation-webui pull request 5677; the `dry_*` parameters of llama.cpp.
#[derive(Debug)]
struct Dry {
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    /// Number of last tokens considered.
    window: usize,
    text: SuffixMatches,
    breakers: Breakers,
}

/// Sequence breakers: strings that may span tokens.
#[derive(Debug)]
struct Breakers {
    strings: Vec<Vec<u8>>,
    tokenizer: Arc<Tokenizer>,
    /// Last bytes of the text: one fewer than the longest breaker has.
    tail: Vec<u8>,
    /// Number of tokens after the last one that completes a breaker.
    since: usize,
}

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    let window = params.dry_penalty_last_n.unwrap_or(usize::MAX);
    let on = params.dry_multiplier > 0.0 && window > 0;
    on.then(|| {
        Box::new(Dry {
            multiplier: params.dry_multiplier.into(),
            base: params.dry_base.into(),
            allowed_length: params.dry_allowed_length,
            window,
            text: SuffixMatches::default(),
            breakers: Breakers::new(&params.dry_sequence_breakers, context.tokenizer),
        }) as _
    })
}

impl LogitsFilter for Dry {
    fn begin(&mut self, prompt: &[TokenId]) {
        self.text.begin(prompt);
        self.breakers.begin(prompt);
    }

    fn accepted(&mut self, token: TokenId) {
        self.text.push(token);
        self.breakers.push(token);
    }

    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let outside = self.text.len().saturating_sub(self.window);
        let mut repeats: HashMap<TokenId, usize> = HashMap::new();
        for (token, len) in self.text.continuations(outside) {
            let len = len.min(self.breakers.since);
            if len >= self.allowed_length {
                let longest = repeats.entry(token).or_default();
                *longest = len.max(*longest);
            }
        }
        for (token, len) in repeats.into_iter().filter(|(token, _)| !self.breakers.occur_in(*token)) {
            let power = self.base.powf((len - self.allowed_length) as f64);
            let penalty = (self.multiplier * power).min(f32::MAX.into()) as f32;
            logits.update_token(token, |value| (value - penalty).max(f32::MIN));
        }
    }
}

impl Breakers {
    fn new(strings: &[String], tokenizer: &Arc<Tokenizer>) -> Self {
        let strings = strings.iter().map(|text| text.clone().into_bytes()).collect();
        Self { strings, tokenizer: tokenizer.clone(), tail: Vec::new(), since: 0 }
    }

    fn begin(&mut self, prompt: &[TokenId]) {
        self.tail.clear();
        self.since = 0;
        prompt.iter().for_each(|&token| self.push(token));
    }

    fn push(&mut self, token: TokenId) {
        let before = self.tail.len();
        self.tail.extend_from_slice(self.tokenizer.token_bytes(token));
        let completed =
            |text: &Vec<u8>| contains(&self.tail[(before + 1).saturating_sub(text.len())..], text);
        self.since = if self.strings.iter().any(completed) { 0 } else { self.since + 1 };
        let longest = self.strings.iter().map(Vec::len).max().unwrap_or(0);
        self.tail.drain(..(self.tail.len() + 1).saturating_sub(longest).min(self.tail.len()));
    }

    /// Returns true if the text of `token` contains a breaker.
    fn occur_in(&self, token: TokenId) -> bool {
        let bytes = self.tokenizer.token_bytes(token);
        self.strings.iter().any(|text| contains(bytes, text))
    }
}

/// Returns true if `text` occurs in `bytes`; it is not empty.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::filtered;

    /// Penalties of the next letters after `text`, with one token a byte.
    fn penalties(params: SamplerParams, text: &str) -> Vec<(char, f32)> {
        let ids: Vec<TokenId> = text.bytes().map(TokenId::from).collect();
        let (prompt, generated) = ids.split_at(ids.len() / 2);
        let params = SamplerParams { dry_multiplier: 1.0, dry_base: 2.0, ..params };
        let left = filtered(filter, &params, &[0.0; 256], &History { prompt, generated });
        let penalized = left.iter().enumerate().filter(|(_, value)| **value != 0.0);
        penalized.map(|(id, value)| (id as u8 as char, -value)).collect()
    }

    #[test]
    fn longer_repetitions_cost_more() {
        let default = SamplerParams::default;
        assert_eq!(penalties(default(), "abcdXabc"), [('d', 2.0)]);
        assert_eq!(penalties(default(), "bcdXabcdYabcd"), [('X', 2.0), ('Y', 4.0)]);
        assert_eq!(
            penalties(default(), "aaaaa"),
            [('a', 4.0)],
            "a sequence may overlap its earlier occurrence"
        );
        assert_eq!(penalties(default(), "cdXc"), [], "shorter than the allowed length");
        let allowed = |dry_allowed_length| SamplerParams { dry_allowed_length, ..default() };
        assert_eq!(penalties(allowed(1), "cdXc"), [('d', 1.0)]);
        assert_eq!(penalties(allowed(4), "abcdXabc"), []);
    }

    #[test]
    fn sequences_end_at_breakers_and_window() {
        let with = |breakers: &[&str], window| SamplerParams {
            dry_sequence_breakers: breakers.iter().map(|text| (*text).to_owned()).collect(),
            dry_penalty_last_n: window,
            ..SamplerParams::default()
        };
        assert_eq!(penalties(with(&[":"], None), "a:bcdXa:bc"), [('d', 1.0)]);
        assert_eq!(
            penalties(with(&["xy:", "-"], None), "xy:bcdXxy:bc"),
            [('d', 1.0)],
            "a breaker of three tokens"
        );
        assert_eq!(penalties(with(&["xyz"], None), "xy:bcdXxy:bc"), [('d', 8.0)]);
        assert_eq!(penalties(with(&[":"], None), "ab:Xab"), [], "the breaker itself is not penalized");
        assert_eq!(penalties(with(&[], None), "ab:Xab"), [(':', 1.0)]);
        assert_eq!(penalties(with(&[], Some(7)), "abcdXabc"), [('d', 1.0)]);
        assert_eq!(penalties(with(&[], Some(5)), "abcdXabc"), []);
        assert_eq!(penalties(with(&[], Some(0)), "abcdXabc"), []);
    }

    #[test]
    fn penalties_stay_finite() {
        let text = "a".repeat(2000);
        let params = SamplerParams { dry_allowed_length: 1, ..SamplerParams::default() };
        assert_eq!(penalties(params, &text), [('a', f32::MAX)]);
    }
}
