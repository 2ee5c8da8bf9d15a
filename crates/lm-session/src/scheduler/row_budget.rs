//! Prompt rows of a step, divided so that the first token of a short prompt does not wait for long ones.

/// A prompt is short while it lacks at most this part of the chunk: a half.
const SHORT_PART: usize = 2;
/// Part of a step's rows that short prompts leave to the others, and part of the chunk that the others have
/// at most beside a short one: an eighth.
const OTHERS_PART: usize = 8;

/// Prompt rows of a request: wanted ones, or its share of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowNeed {
    /// Number of the request among the candidates of the step.
    pub at: usize,
    pub rows: usize,
}

/// Prompt rows of a step that are not given away yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowBudget {
    left: usize,
    chunk: usize,
    /// Maximum rows of a step without a short prompt.
    long: usize,
}

impl RowBudget {
    /// Creates the budget of a step of `rows` rows, at most `chunk`, and at most `long` without a short
    /// prompt.
    pub fn new(rows: usize, chunk: usize, long: usize) -> Self {
        Self { left: rows, chunk, long }
    }

    /// Gives rows to the prompts of one priority, in the order of their arrival: without a short one in equal
    /// shares. Short ones come first, those with the fewest rows before the others. What they leave, at most
    /// an eighth of the chunk so that the step is short, is divided equally, so that none waits forever.
    pub fn share(&mut self, wanted: &[RowNeed]) -> Vec<RowNeed> {
        let mut shares = self.share_short(wanted);
        let rest = wanted.iter().map(|need| {
            let had = shares.iter().find(|share| share.at == need.at).map_or(0, |share| share.rows);
            RowNeed { rows: need.rows - had, ..*need }
        });
        let mut rest: Vec<RowNeed> = rest.filter(|need| need.rows > 0).collect();
        shares.extend(self.share_equally(&mut rest));
        shares
    }

    fn share_short(&mut self, wanted: &[RowNeed]) -> Vec<RowNeed> {
        let is_short = |need: &&RowNeed| need.rows <= self.chunk / SHORT_PART;
        let mut short: Vec<RowNeed> = wanted.iter().filter(is_short).copied().collect();
        if short.is_empty() {
            self.left = self.left.min(self.long);
            return short;
        }
        short.sort_by_key(|need| need.rows);
        let others = self.left.div_ceil(OTHERS_PART);
        for need in &mut short {
            need.rows = need.rows.min(self.left - others);
            self.left -= need.rows;
        }
        self.left = self.left.min(self.chunk.div_ceil(OTHERS_PART));
        short
    }

    /// Equal shares, with unused rows going to the others. With fewer rows than requests the first ones get
    /// one each.
    fn share_equally(&mut self, wanted: &mut [RowNeed]) -> Vec<RowNeed> {
        if self.left >= wanted.len() {
            wanted.sort_by_key(|need| need.rows);
        }
        let requests = wanted.len();
        let share = |(served, need): (usize, &RowNeed)| {
            let rows = self.left.div_ceil(requests - served).min(need.rows);
            self.left -= rows;
            RowNeed { rows, ..*need }
        };
        wanted.iter().enumerate().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of prompts that want these rows, of `rows` rows and a chunk of 64.
    fn shares(rows: usize, wanted: &[usize]) -> Vec<usize> {
        let needs: Vec<RowNeed> = wanted.iter().enumerate().map(|(at, &rows)| RowNeed { at, rows }).collect();
        let mut shares = vec![0; wanted.len()];
        for share in RowBudget::new(rows, 64, 64).share(&needs) {
            shares[share.at] += share.rows;
        }
        shares
    }

    #[test]
    fn lone_prompt_has_the_chunk() {
        assert_eq!(shares(64, &[1_000]), [64]);
        assert_eq!(shares(64, &[64]), [64]);
        assert_eq!(shares(64, &[32]), [32]);
        assert_eq!(shares(1, &[32]), [1]);
    }

    #[test]
    fn long_prompts_alone_have_fewer_rows() {
        let wanted = [1_000, 1_000, 20].map(|rows| RowNeed { at: 0, rows });
        let rows = |wanted: &[RowNeed]| {
            let mut budget = RowBudget::new(64, 64, 16);
            budget.share(wanted).iter().map(|share| share.rows).collect::<Vec<_>>()
        };
        assert_eq!(rows(&wanted[..1]), [16]);
        assert_eq!(rows(&wanted[..2]), [8, 8]);
        assert_eq!(rows(&wanted[2..]), [20], "a short one is not divided");
    }

    #[test]
    fn long_prompts_have_equal_shares() {
        assert_eq!(shares(64, &[1_000, 33]), [32, 32]);
        assert_eq!(shares(64, &[100, 200, 300, 400]), [16; 4]);
        assert_eq!(shares(3, &[100, 200, 300, 400]), [1, 1, 1, 0]);
    }

    #[test]
    fn short_prompts_come_first_and_leave_an_eighth() {
        assert_eq!(shares(64, &[1_000, 20]), [8, 20]);
        assert_eq!(shares(64, &[1_000, 1_000, 20, 20]), [4, 4, 20, 20]);
        assert_eq!(shares(64, &[1_000, 32, 30, 31]), [2, 3, 30, 29]);
        assert_eq!(shares(8, &[1_000, 20]), [1, 7]);
        assert_eq!(shares(8, &[1_000, 20, 5]), [1, 2, 5]);
    }

    #[test]
    fn short_prompts_share_a_step_alone() {
        assert_eq!(shares(64, &[32, 32]), [32, 32]);
        assert_eq!(shares(64, &[32, 32, 32]), [32, 28, 4]);
        assert_eq!(shares(2, &[5, 4]), [1, 1]);
    }

    #[test]
    fn next_priority_has_what_is_left_beside_a_short_prompt() {
        let need = |at, rows| RowNeed { at, rows };
        let mut budget = RowBudget::new(64, 64, 64);
        assert_eq!(budget.share(&[need(0, 10)]), [need(0, 10)]);
        assert_eq!(budget.share(&[need(1, 1_000)]), [need(1, 8)]);
        assert_eq!(budget.share(&[need(2, 10)]), [need(2, 0), need(2, 0)]);
    }

    #[test]
    fn small_chunk_leaves_a_row_to_the_others() {
        let needs = [RowNeed { at: 0, rows: 1_000 }, RowNeed { at: 1, rows: 2 }];
        let shares = RowBudget::new(4, 4, 4).share(&needs);
        assert_eq!(shares, [RowNeed { at: 1, rows: 2 }, RowNeed { at: 0, rows: 1 }]);
    }
}
