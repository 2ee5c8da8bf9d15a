//! Measured acceptance of draft tokens.

/// Classes of drafts: by prompt lookup with matches of 1, 2-3, 4-7, and more tokens; by a draft model.
const CLASSES: usize = 5;
/// Acceptance by class before the first measurement: longer matches predict better.
const PRIOR: [f64; CLASSES] = [0.3, 0.5, 0.7, 0.85, 0.7];
/// Weight of the newest draft token in the moving averages.
const NEWEST: f64 = 0.15;
/// Share of the return to the prior for each unverified draft, so that a class is tried again after some
/// time.
const RECOVERY: f64 = 0.02;
/// Largest estimate: no draft is certain.
const MAX: f64 = 0.98;

/// Origin of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Prompt lookup: the length of the match that the draft continues.
    Match(usize),
    /// The draft model.
    Model,
}

/// Probability that a draft token is accepted, by the draft's origin: exponential moving averages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptance([f64; CLASSES]);

impl Default for Acceptance {
    fn default() -> Self {
        Self(PRIOR)
    }
}

impl Acceptance {
    /// Records a draft of `drafted` tokens with the first `accepted` accepted.
    pub fn record(&mut self, origin: Origin, drafted: usize, accepted: usize) {
        let mean = &mut self.0[class(origin)];
        for _ in 0..accepted {
            *mean += NEWEST * (1.0 - *mean);
        }
        if accepted < drafted {
            *mean -= NEWEST * *mean;
        }
    }

    /// Records a draft that was not verified because it was unprofitable.
    pub fn record_unused(&mut self, origin: Origin) {
        let class = class(origin);
        self.0[class] += RECOVERY * (PRIOR[class] - self.0[class]);
    }

    /// Returns the number of draft tokens, at most `len`, that are each accepted with at least the
    /// probability `break_even`.
    pub fn worth(&self, origin: Origin, len: usize, break_even: f64) -> usize {
        let acceptance = self.0[class(origin)].min(MAX);
        let survival = std::iter::successors(Some(acceptance), |survival| Some(survival * acceptance));
        survival.take(len).take_while(|&survival| survival >= break_even).count()
    }
}

fn class(origin: Origin) -> usize {
    match origin {
        Origin::Match(len) => (len.max(1).ilog2() as usize).min(CLASSES - 2),
        Origin::Model => CLASSES - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_shrink_with_row_cost() {
        let acceptance = Acceptance::default();
        let worth = |break_even| acceptance.worth(Origin::Match(2), 8, break_even);
        assert_eq!([0.0, 0.1, 0.25, 0.4, 0.6, 1.0].map(worth), [8, 3, 2, 1, 0, 0]);
        assert!(acceptance.worth(Origin::Match(9), 8, 0.25) > acceptance.worth(Origin::Match(2), 8, 0.25));
        assert_eq!(acceptance.worth(Origin::Match(2), 0, 0.0), 0);
    }

    #[test]
    fn rejection_ends_and_acceptance_extends_drafts() {
        let (mut bad, mut good) = (Acceptance::default(), Acceptance::default());
        for _ in 0..20 {
            bad.record(Origin::Match(3), 4, 0);
            good.record(Origin::Match(3), 4, 4);
        }
        assert_eq!((bad.worth(Origin::Match(3), 8, 0.25), good.worth(Origin::Match(3), 8, 0.25)), (0, 8));
        assert_eq!(
            good.worth(Origin::Match(4), 8, 0.25),
            Acceptance::default().worth(Origin::Match(4), 8, 0.25),
            "a class of its own"
        );
    }

    #[test]
    fn unprofitable_class_is_retried() {
        let mut acceptance = Acceptance::default();
        (0..20).for_each(|_| acceptance.record(Origin::Match(2), 1, 0));
        let declined = (0..1000).take_while(|_| {
            acceptance.record_unused(Origin::Match(2));
            acceptance.worth(Origin::Match(2), 8, 0.25) == 0
        });
        assert!((10..200).contains(&declined.count()));
    }

    #[test]
    fn long_matches_do_not_count_for_the_draft_model() {
        let mut acceptance = Acceptance::default();
        (0..20).for_each(|_| acceptance.record(Origin::Match(100), 4, 0));
        let worth = |acceptance: &Acceptance| acceptance.worth(Origin::Model, 8, 0.25);
        assert_eq!(worth(&acceptance), worth(&Acceptance::default()));
    }
}
