//! Square table of learned positions, resized to the shape of an image.

/// Learned positions of a square of patches.
pub(super) struct PositionTable {
    /// Side of the square.
    pub(super) side: usize,
    /// Width of a row.
    pub(super) width: usize,
    /// `[side, side, width]`.
    pub(super) values: Vec<f32>,
}

impl PositionTable {
    /// The table in another shape, `[rows, columns, width]`: bilinear, averaged over all entries that a
    /// smaller shape covers.
    ///
    /// # Source
    /// `torch.nn.functional.interpolate(mode="bilinear", align_corners=False, antialias=True)`, torch 2.15.0.
    pub(super) fn resized(&self, rows: usize, columns: usize) -> Vec<f32> {
        if [rows, columns] == [self.side; 2] {
            return self.values.clone();
        }
        let (across, down) = (weights(self.side, columns), weights(self.side, rows));
        let mut wide = Vec::with_capacity(self.side * columns * self.width);
        for row in self.values.chunks_exact(self.side * self.width) {
            across.iter().for_each(|(first, weights)| {
                self.push_sum(&mut wide, &row[first * self.width..], 1, weights)
            });
        }
        let mut out = Vec::with_capacity(rows * columns * self.width);
        for (first, weights) in &down {
            for column in 0..columns {
                self.push_sum(&mut out, &wide[(first * columns + column) * self.width..], columns, weights);
            }
        }
        out
    }

    /// Appends the weighted sum of rows of `from`, `step` rows apart.
    fn push_sum(&self, out: &mut Vec<f32>, from: &[f32], step: usize, weights: &[f32]) {
        let start = out.len();
        out.resize(start + self.width, 0.0);
        for (row, weight) in from.chunks(self.width).step_by(step).zip(weights) {
            out[start..].iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
    }
}

/// For each of `to` points, the first covered point of `from` and the weights: a triangle as wide as two
/// points of the coarser side.
fn weights(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    let of_point = |index: usize| {
        let centre = scale * (index as f64 + 0.5);
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(from);
        let weight = |point: usize| (1.0 - ((point as f64 - centre + 0.5) / support).abs()).max(0.0);
        let all: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = all.iter().sum();
        (first, all.iter().map(|weight| (weight / sum) as f32).collect())
    };
    (0..to).map(of_point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(side: usize) -> PositionTable {
        let values = (0..side * side).map(|index| (index * index % 17) as f32 - 5.0).collect();
        PositionTable { side, width: 1, values }
    }

    /// Values of torch 2.15.0.
    #[test]
    fn resized_tables_equal_torch() {
        let cases: [(usize, [usize; 2], &[f32]); 2] = [
            (3, [2, 5], &[-1.625, -0.325, 1.625, 0.95, 0.5, -0.375, 3.925, 10.375, 7.824999, 6.125]),
            (4, [3, 3], &[-0.71, -1.75, 3.580001, 8.299999, 4.5, 3.5, 6.18, 7.95, 0.619999]),
        ];
        for (side, [rows, columns], expected) in cases {
            let resized = table(side).resized(rows, columns);
            assert_eq!(resized.len(), expected.len());
            for (a, b) in resized.iter().zip(expected) {
                assert!((a - b).abs() < 1e-5, "{side} to {rows} × {columns}: {resized:?}");
            }
        }
        assert_eq!(table(3).resized(3, 3), table(3).values);
    }
}
