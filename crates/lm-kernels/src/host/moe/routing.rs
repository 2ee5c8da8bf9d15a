//! Expert assignment of rows, and rows grouped by expert.

use std::ops::Range;

/// Selected experts and weights of each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routing {
    /// Experts per row (top-k).
    pub per_row: usize,
    /// `[rows, per_row]`; their results are added in this order.
    pub experts: Vec<u32>,
    /// `[rows, per_row]`
    pub weights: Vec<f32>,
}

impl Routing {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.experts.len().checked_div(self.per_row).unwrap_or(0)
    }

    /// Asserts that it has `rows` rows over `count` experts.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check(&self, rows: usize, count: usize) {
        let Self { per_row, experts, weights } = self;
        assert_eq!(experts.len(), rows * per_row, "{per_row} experts for each of {rows} rows");
        assert_eq!(weights.len(), experts.len(), "a weight for each expert of a row");
        let outside = experts.iter().find(|&&expert| expert as usize >= count);
        assert_eq!(outside, None, "there are {count} experts");
    }

    /// Groups the rows by expert.
    pub(crate) fn grouped(&self, count: usize) -> Grouped {
        let mut starts = vec![0; count + 1];
        for &expert in &self.experts {
            starts[expert as usize + 1] += 1;
        }
        for expert in 0..count {
            starts[expert + 1] += starts[expert];
        }
        let groups = (0..count).map(|expert| (expert, starts[expert]..starts[expert + 1]));
        let groups: Vec<_> = groups.filter(|(_, slots)| !slots.is_empty()).collect();
        let (mut rows, mut slots) = (vec![0; self.experts.len()], Vec::with_capacity(self.experts.len()));
        for (index, &expert) in self.experts.iter().enumerate() {
            let slot = &mut starts[expert as usize];
            rows[*slot] = index / self.per_row;
            slots.push(*slot);
            *slot += 1;
        }
        Grouped { groups, rows, slots }
    }
}

/// Rows grouped by expert: a row has a slot for each of its experts.
#[derive(Debug, PartialEq)]
pub(crate) struct Grouped {
    /// Experts that have rows, and their slots.
    pub groups: Vec<(usize, Range<usize>)>,
    /// Row of each slot.
    pub rows: Vec<usize>,
    /// `[rows, per_row]`: the slots of each row.
    pub slots: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_grouped_by_expert_in_order() {
        let routing = Routing { per_row: 2, experts: vec![3, 0, 1, 3, 3, 0], weights: vec![0.5; 6] };
        assert_eq!(routing.rows(), 3);
        routing.check(3, 4);
        let grouped = routing.grouped(4);
        assert_eq!(grouped.groups, [(0, 0..2), (1, 2..3), (3, 3..6)]);
        assert_eq!(grouped.rows, [0, 2, 1, 0, 1, 2]);
        assert_eq!(grouped.slots, [3, 0, 2, 4, 5, 1]);
    }

    #[test]
    fn no_rows_give_no_groups() {
        assert_eq!(Routing::default().grouped(2), Grouped { groups: vec![], rows: vec![], slots: vec![] });
    }

    #[test]
    #[should_panic(expected = "there are 3 experts")]
    fn unknown_expert_is_rejected() {
        Routing { per_row: 1, experts: vec![3], weights: vec![1.0] }.check(1, 3);
    }
}
