//! Options of the logits filters beyond temperature, top-k, top-p, min-p and the penalties.

use std::num::NonZeroUsize;

use lm_session::SamplerParams;
use lm_tokenizer::TokenId;

use super::numbers;

/// Options of further logits filters; all are off by default.
#[derive(Debug, clap::Args)]
pub struct FilterArgs {
    /// Locally typical sampling: keep the smallest set of tokens of surprisal closest to the entropy whose
    /// probabilities sum to P; 1 disables it
    #[arg(long, value_name = "P", value_parser = numbers::probability, allow_negative_numbers = true)]
    typical_p: Option<f32>,
    /// Top-nσ sampling: drop tokens whose logit is more than N standard deviations below the highest one; 0
    /// disables it
    #[arg(long, value_name = "N", value_parser = numbers::non_negative, allow_negative_numbers = true)]
    top_n_sigma: Option<f32>,
    /// XTC sampling: remove the most probable tokens in this fraction of the steps; 0 disables it
    #[arg(long, value_name = "P", value_parser = numbers::probability, allow_negative_numbers = true)]
    xtc_probability: Option<f32>,
    /// XTC: minimum probability of the removed tokens; the least probable of them is kept [default: 0.1]
    #[arg(long, value_name = "P", value_parser = numbers::probability, allow_negative_numbers = true)]
    xtc_threshold: Option<f32>,
    /// DRY penalty on tokens that would continue a repeated sequence, multiplied by X; 0 disables it
    #[arg(long, value_name = "X", value_parser = numbers::non_negative, allow_negative_numbers = true)]
    dry_multiplier: Option<f32>,
    /// DRY: growth of the penalty with each further token of the sequence, at least 1 [default: 1.75]
    #[arg(long, value_name = "X", value_parser = numbers::base, allow_negative_numbers = true)]
    dry_base: Option<f32>,
    /// DRY: length of the shortest sequence whose continuation is penalized [default: 2]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    dry_allowed_length: Option<NonZeroUsize>,
    /// DRY: number of last tokens searched for the sequence [default: all]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::at_least_zero, allow_negative_numbers = true)]
    dry_penalty_last_n: Option<usize>,
    /// DRY: text at which sequences end; may be repeated [default: newline, `:`, `"` and `*`]
    #[arg(long, value_name = "TEXT", value_parser = numbers::stop_sequence, allow_hyphen_values = true)]
    dry_sequence_breaker: Vec<String>,
    /// Number of last tokens that the repetition, presence and frequency penalties consider [default: all]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    penalty_window: Option<NonZeroUsize>,
    /// Mask tokens that would repeat a sequence of N tokens; 0 disables it
    #[arg(long, value_name = "N", value_parser = numbers::at_least_zero, allow_negative_numbers = true)]
    no_repeat_ngram_size: Option<usize>,
    /// Never sample these token ids, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub suppress_tokens: Vec<TokenId>,
}

impl FilterArgs {
    /// Applies the flags to `params`.
    pub fn apply(&self, params: &mut SamplerParams) {
        let floats = [
            (&mut params.typical_p, self.typical_p),
            (&mut params.top_n_sigma, self.top_n_sigma),
            (&mut params.xtc_probability, self.xtc_probability),
            (&mut params.xtc_threshold, self.xtc_threshold),
            (&mut params.dry_multiplier, self.dry_multiplier),
            (&mut params.dry_base, self.dry_base),
        ];
        for (param, flag) in floats {
            *param = flag.unwrap_or(*param);
        }
        params.dry_allowed_length =
            self.dry_allowed_length.map_or(params.dry_allowed_length, NonZeroUsize::get);
        params.penalty_window = self.penalty_window.map(NonZeroUsize::get).or(params.penalty_window);
        params.dry_penalty_last_n = self.dry_penalty_last_n.or(params.dry_penalty_last_n);
        if !self.dry_sequence_breaker.is_empty() {
            params.dry_sequence_breakers.clone_from(&self.dry_sequence_breaker);
        }
        params.no_repeat_ngram_size = self.no_repeat_ngram_size.unwrap_or(params.no_repeat_ngram_size);
        params.suppress_tokens.extend(&self.suppress_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        filters: FilterArgs,
    }

    #[test]
    fn absent_flags_set_no_parameter() {
        let parsed = |line: &[&str]| {
            let mut params = SamplerParams::default();
            Line::parse_from([&["lm"], line].concat()).filters.apply(&mut params);
            params
        };
        assert_eq!(parsed(&[]), SamplerParams::default());
        let line = "--typical-p 0.5 --top-n-sigma 2 --xtc-probability 0.25 --xtc-threshold 0.2 --dry-multiplier 0.75 --dry-base 2 \
                    --dry-allowed-length 3 --dry-penalty-last-n 64 --dry-sequence-breaker - --dry-sequence-breaker ; \
                    --penalty-window 32 --no-repeat-ngram-size 4 --suppress-tokens 7,8";
        let expected = SamplerParams {
            typical_p: 0.5,
            top_n_sigma: 2.0,
            xtc_probability: 0.25,
            xtc_threshold: 0.2,
            dry_multiplier: 0.75,
            dry_base: 2.0,
            dry_allowed_length: 3,
            dry_penalty_last_n: Some(64),
            dry_sequence_breakers: vec!["-".to_owned(), ";".to_owned()],
            penalty_window: Some(32),
            no_repeat_ngram_size: 4,
            suppress_tokens: vec![7, 8],
            ..SamplerParams::default()
        };
        assert_eq!(parsed(&line.split_whitespace().collect::<Vec<_>>()), expected);
    }
}
