//! Measures of each token, in double precision, and their means over a text.

use anyhow::{Context, Result, ensure};

/// Sums over the scored tokens of a text.
#[derive(Default)]
pub struct Measures {
    /// Negative log-likelihood of the next token.
    pub loss: Mean,
    /// Divergence of the model's distributions from the base's; empty without a base.
    pub divergence: Divergence,
}

/// Divergence of distributions from a base.
#[derive(Default)]
pub struct Divergence {
    /// KL divergence D(P ‖ Q) of the model's distribution Q from the base's P: the sum of P · ln(P / Q), in
    /// nats.
    pub kl: Mean,
    /// Number of tokens at which both have the same most likely token.
    pub same_top: usize,
}

impl Measures {
    /// Adds the measures of the token `next`, from the logits before it.
    ///
    /// # Errors
    /// When logits are NaN, have no finite value, or `next` has no logit.
    pub fn add(&mut self, next: usize, logits: &[f32], base: Option<&[f32]>) -> Result<()> {
        let q = log_softmax(logits)?;
        let loss = q.get(next).with_context(|| format!("the model has no logit for token {next}"))?;
        self.loss.add(-loss);
        if let Some(base) = base {
            let p = log_softmax(base).context("the base")?;
            self.divergence.kl.add(kl_divergence(&p, &q));
            self.divergence.same_top += usize::from(top(base) == top(logits));
        }
        Ok(())
    }

    /// Perplexity: e to the mean loss.
    pub fn perplexity(&self) -> f64 {
        self.loss.mean().exp()
    }

    /// Standard error of the perplexity, to first order.
    pub fn perplexity_error(&self) -> f64 {
        self.perplexity() * self.loss.standard_error()
    }
}

/// Running mean and variance (Welford's algorithm).
#[derive(Default)]
pub struct Mean {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.count += 1;
        let from_old = x - self.mean;
        self.mean += from_old / self.count as f64;
        self.squares += from_old * (x - self.mean);
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard error of the mean, for independent numbers; 0 for fewer than two.
    pub fn standard_error(&self) -> f64 {
        let freedom = self.count.saturating_sub(1).max(1) as f64;
        (self.squares / freedom / self.count.max(1) as f64).sqrt()
    }
}

/// Log-probabilities of logits.
fn log_softmax(logits: &[f32]) -> Result<Vec<f64>> {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - largest).exp()).sum();
    ensure!(sum.is_finite(), "the model's logits are not finite");
    let log_sum = largest + sum.ln();
    Ok(logits.iter().map(|&x| f64::from(x) - log_sum).collect())
}

/// KL divergence: the sum of p · ln(p / q), from log-probabilities; terms with p = 0 are 0.
fn kl_divergence(p: &[f64], q: &[f64]) -> f64 {
    let term = |(&p, &q): (&f64, &f64)| if p == f64::NEG_INFINITY { 0.0 } else { p.exp() * (p - q) };
    p.iter().zip(q).map(term).sum()
}

/// Index of the largest logit, the first of equal ones.
fn top(logits: &[f32]) -> usize {
    let better = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len()).reduce(better).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f32 = f32::NEG_INFINITY;

    fn close(x: f64, y: f64) {
        assert!((x - y).abs() < 1e-6, "{x} is not {y}");
    }

    #[test]
    fn uniform_perplexity_equals_vocabulary_size() {
        let mut measures = Measures::default();
        for next in 0..4 {
            measures.add(next, &[-7.5; 4], None).expect("finite");
        }
        close(measures.perplexity(), 4.0);
        close(measures.perplexity_error(), 0.0);
        assert_eq!((measures.loss.count(), measures.divergence.kl.count()), (4, 0));
    }

    #[test]
    fn divergence_runs_from_base_to_model() {
        let ln = |p: [f32; 3]| p.map(f32::ln);
        let (base, model) = (ln([0.5, 0.25, 0.25]), ln([0.25, 0.5, 0.25]));
        let mut measures = Measures::default();
        measures.add(0, &model, Some(&base)).expect("finite");
        close(measures.divergence.kl.mean(), 0.25 * 2.0_f64.ln());
        assert_eq!(measures.divergence.same_top, 0);
        measures.add(0, &base, Some(&base)).expect("finite");
        close(measures.divergence.kl.mean(), 0.125 * 2.0_f64.ln());
        assert_eq!(measures.divergence.same_top, 1);
    }

    #[test]
    fn impossible_tokens_are_weighted_by_base() {
        let kl = |base: [f32; 2], model: [f32; 2]| {
            let mut measures = Measures::default();
            measures.add(0, &model, Some(&base)).expect("finite");
            measures.divergence.kl.mean()
        };
        close(kl([0.0, NEVER], [0.0, 0.0]), 2.0_f64.ln());
        assert_eq!(kl([0.0, 0.0], [0.0, NEVER]), f64::INFINITY);
    }

    #[test]
    fn standard_error_is_of_the_mean() {
        let mut mean = Mean::default();
        assert_eq!(mean.standard_error(), 0.0);
        for x in [1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0, 1e9 + 4.0] {
            mean.add(x);
        }
        close(mean.mean(), 1e9 + 2.5);
        close(mean.standard_error(), (5.0_f64 / 3.0 / 4.0).sqrt());
    }

    #[test]
    fn degenerate_logits_are_rejected() {
        for logits in [[f32::NAN, 0.0], [f32::INFINITY, 0.0], [NEVER, NEVER]] {
            assert!(Measures::default().add(0, &logits, None).is_err(), "{logits:?}");
            assert!(Measures::default().add(0, &[0.0, 0.0], Some(&logits)).is_err(), "{logits:?}");
        }
        assert!(Measures::default().add(2, &[0.0, 0.0], None).is_err());
    }
}
