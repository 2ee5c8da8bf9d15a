//! Measured acceptance of draft tokens.

/// Classes of match lengths: 1, 2-3, 4-7, and more tokens.
const CLASSES: usize = 4;
/// Acceptance by class before anything is measured: longer matches predict better.
const PRIOR: [f64; CLASSES] = [0.3, 0.5, 0.7, 0.85];
/// Weight of the newest draft token in the moving averages.
const NEWEST: f64 = 0.15;
/// Share by which an average returns to its prior for each draft that was not verified: a class is tried again after some time.
const RECOVERY: f64 = 0.02;
/// Largest estimate: no draft is certain.
const MAX: f64 = 0.98;

/// Probability that a draft token is accepted, by the length of the match that it continues: exponential moving averages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptance([f64; CLASSES]);

impl Default for Acceptance {
    fn default() -> Self {
        Self(PRIOR)
    }
}

impl Acceptance {
    /// Records a draft of `drafted` tokens, the first `accepted` of which were accepted.
    pub fn record(&mut self, match_len: usize, drafted: usize, accepted: usize) {
        let mean = &mut self.0[class(match_len)];
        for _ in 0..accepted {
            *mean += NEWEST * (1.0 - *mean);
        }
        if accepted < drafted {
            *mean -= NEWEST * *mean;
        }
    }

    /// Records a draft that was not verified because it would not have paid.
    pub fn record_unused(&mut self, match_len: usize) {
        let class = class(match_len);
        self.0[class] += RECOVERY * (PRIOR[class] - self.0[class]);
    }

    /// Returns the number of draft tokens, at most `len`, each of which is accepted with at least the probability `break_even`.
    pub fn worth(&self, match_len: usize, len: usize, break_even: f64) -> usize {
        let acceptance = self.0[class(match_len)].min(MAX);
        let survival = std::iter::successors(Some(acceptance), |survival| Some(survival * acceptance));
        survival.take(len).take_while(|&survival| survival >= break_even).count()
    }
}

fn class(match_len: usize) -> usize {
    (match_len.max(1).ilog2() as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_shrink_as_a_row_costs_more() {
        let acceptance = Acceptance::default();
        let worth = |break_even| acceptance.worth(2, 8, break_even);
        assert_eq!([0.0, 0.1, 0.25, 0.4, 0.6, 1.0].map(worth), [8, 3, 2, 1, 0, 0]);
        assert!(acceptance.worth(9, 8, 0.25) > acceptance.worth(2, 8, 0.25));
        assert_eq!(acceptance.worth(2, 0, 0.0), 0);
    }

    #[test]
    fn rejected_drafts_end_speculation_and_accepted_ones_lengthen_it() {
        let (mut bad, mut good) = (Acceptance::default(), Acceptance::default());
        for _ in 0..20 {
            bad.record(3, 4, 0);
            good.record(3, 4, 4);
        }
        assert_eq!((bad.worth(3, 8, 0.25), good.worth(3, 8, 0.25)), (0, 8));
        assert_eq!(good.worth(4, 8, 0.25), Acceptance::default().worth(4, 8, 0.25), "a class of its own");
    }

    #[test]
    fn a_class_that_did_not_pay_is_tried_again() {
        let mut acceptance = Acceptance::default();
        (0..20).for_each(|_| acceptance.record(2, 1, 0));
        let declined = (0..1000).take_while(|_| {
            acceptance.record_unused(2);
            acceptance.worth(2, 8, 0.25) == 0
        });
        assert!((10..200).contains(&declined.count()));
    }
}
