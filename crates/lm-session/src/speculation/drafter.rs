//! Draft tokens of one generation.

use crate::sampling::SuffixMatches;
use crate::speculation::Speculation;
use lm_tokenizer::TokenId;

use super::acceptance::{Acceptance, Origin};

/// Maximum length of a draft, for all settings.
const MAX_DRAFT: usize = 64;

/// Draft of one generation, with the measured acceptance of earlier ones.
#[derive(Debug)]
pub(crate) struct Drafter {
    settings: Speculation,
    text: SuffixMatches,
    acceptance: Acceptance,
    /// Continuation of the tokens so far.
    draft: Vec<TokenId>,
    origin: Origin,
    /// Maximum number of tokens that may follow, less one.
    limit: usize,
    /// Numbers of verified and of accepted draft tokens.
    drafted: usize,
    accepted: usize,
}

impl Drafter {
    /// Creates a drafter; `None` if `settings` turn speculation off.
    pub fn new(settings: Speculation) -> Option<Self> {
        (settings.max_draft > 0).then(|| Self {
            settings,
            text: SuffixMatches::default(),
            acceptance: Acceptance::default(),
            draft: Vec::new(),
            origin: Origin::Match(0),
            limit: 0,
            drafted: 0,
            accepted: 0,
        })
    }

    /// Returns the draft tokens that pay in a step where a row costs `row_cost` of the output of a plain
    /// step.
    pub fn draft(&self, row_cost: f64) -> &[TokenId] {
        match self.origin {
            Origin::Match(_) => &self.draft[..self.worth(self.draft.len(), row_cost)],
            Origin::Model => &self.draft, // As many as were worth drafting.
        }
    }

    fn worth(&self, len: usize, cost: f64) -> usize {
        let break_even = self.settings.break_even.map_or(cost, f64::from);
        self.acceptance.worth(self.origin, len, break_even)
    }

    /// Returns the number of tokens that a draft model should draft if prompt lookup has no profitable draft:
    /// each costs `token_cost` of the output of a plain step, for drafting and verifying.
    pub fn model_draft_len(&mut self, row_cost: f64, token_cost: f64) -> usize {
        if !self.draft(row_cost).is_empty() {
            return 0;
        }
        self.draft.clear();
        self.origin = Origin::Model;
        let len = self.worth(self.limit, token_cost);
        if len == 0 {
            self.acceptance.record_unused(Origin::Model);
        }
        len
    }

    /// Replaces the draft by that of a draft model, until the next [`Drafter::propose`].
    pub fn set_model_draft(&mut self, draft: Vec<TokenId>) {
        (self.draft, self.origin) = (draft, Origin::Model);
    }

    /// Records that the first `drafted` tokens of the draft were verified, and the first `accepted` of them
    /// accepted.
    pub fn record(&mut self, drafted: usize, accepted: usize) {
        if drafted > 0 {
            self.acceptance.record(self.origin, drafted, accepted);
        } else if !self.draft.is_empty() {
            self.acceptance.record_unused(self.origin);
        }
        self.drafted += drafted;
        self.accepted += accepted;
    }

    /// Finds a draft of up to `limit` tokens for the text `ids`, which continues that of the last call. It
    /// ends before the first of `stop_ids`.
    pub fn propose(&mut self, ids: &[TokenId], limit: usize, stop_ids: &[TokenId]) {
        match self.text.len() {
            0 => self.text.begin(ids),
            known => ids[known..].iter().for_each(|&id| self.text.push(id)),
        }
        self.draft.clear();
        self.origin = Origin::Match(0);
        self.limit = limit.min(self.settings.max_draft).min(MAX_DRAFT);
        let Some((start, match_len)) = self.text.longest() else { return };
        if match_len < self.settings.min_match {
            return;
        }
        // Past the end of the text the draft continues itself: the text is periodic.
        let period = ids.len() - start;
        let continuation = (0..self.limit).map(|index| ids[start + index % period]);
        self.draft.extend(continuation.take_while(|id| !stop_ids.contains(id)));
        self.origin = Origin::Match(match_len);
    }

    /// Numbers of verified and of accepted draft tokens.
    pub fn totals(&self) -> (usize, usize) {
        (self.drafted, self.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafter(max_draft: usize, min_match: usize) -> Drafter {
        Drafter::new(Speculation { max_draft, min_match, break_even: Some(0.0) }).unwrap()
    }

    #[test]
    fn draft_continues_the_longest_latest_match() {
        let mut drafter = drafter(3, 2);
        // `1 2 3` occurs once before; `2 3` occurs twice.
        drafter.propose(&[1, 2, 3, 4, 5, 9, 2, 3, 8, 8, 1, 2, 3], 9, &[]);
        assert_eq!(drafter.draft(1.0), [4, 5, 9]);
        let mut latest = self::drafter(3, 2);
        latest.propose(&[2, 3, 4, 2, 3, 5, 2, 3], 9, &[]);
        assert_eq!(latest.draft(1.0), [5, 2, 3]);
    }

    #[test]
    fn period_continues_past_the_end() {
        let mut drafter = drafter(5, 2);
        drafter.propose(&[9, 1, 2, 1, 2], 9, &[]);
        assert_eq!(drafter.draft(1.0), [1, 2, 1, 2, 1]);
        drafter.propose(&[9, 1, 2, 1, 2, 2], 9, &[]);
        assert_eq!(drafter.draft(1.0), [0; 0], "a match of one token");
        drafter.propose(&[9, 1, 2, 1, 2, 2, 1], 9, &[]);
        assert_eq!(drafter.draft(1.0), [2, 2, 1, 2, 2]);
    }

    #[test]
    fn drafts_end_at_limits_and_before_stop_ids() {
        let text = [1, 2, 3, 4, 5, 6, 1, 2];
        for (limit, stop_ids, expected) in
            [(9, &[][..], &[3, 4, 5, 6][..]), (2, &[], &[3, 4]), (0, &[], &[]), (9, &[5, 6], &[3, 4])]
        {
            let mut drafter = drafter(4, 2);
            drafter.propose(&text, limit, stop_ids);
            assert_eq!(drafter.draft(1.0), expected, "{limit} {stop_ids:?}");
        }
        assert!(Drafter::new(Speculation::OFF).is_none());
    }

    #[test]
    fn unprofitable_draft_is_not_used() {
        let mut drafter = Drafter::new(Speculation { break_even: None, ..Speculation::default() }).unwrap();
        drafter.propose(&[1, 2, 3, 4, 5, 6, 1, 2], 9, &[]);
        let lens = [0.0, 0.2, 0.4, 0.9].map(|cost| drafter.draft(cost).len());
        assert!(lens[0] > lens[1] && lens[1] > lens[2] && lens[2] > lens[3], "{lens:?}");
        assert_eq!(lens[3], 0);
        drafter.record(2, 1);
        assert_eq!(drafter.totals(), (2, 1));
    }

    #[test]
    fn unprofitable_draft_model_is_retried() {
        let mut drafter = Drafter::new(Speculation { break_even: None, ..Speculation::default() }).unwrap();
        for _ in 0..20 {
            drafter.propose(&[1, 2, 3], 9, &[]);
            drafter.set_model_draft(vec![4]);
            drafter.record(1, 0);
        }
        let declined = (0..1000).take_while(|_| {
            drafter.propose(&[1, 2, 3], 9, &[]);
            drafter.model_draft_len(0.25, 0.25) == 0
        });
        assert!((10..200).contains(&declined.count()));
    }
}
