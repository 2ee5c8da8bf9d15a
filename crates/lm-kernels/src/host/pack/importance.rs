//! Importance of a matrix's columns: the weights of their squared errors when 4-bit scales are searched for.

use super::super::lanes::{F32x16, LANES};
use super::integer::GROUP;
use crate::error::{Error, Result};

/// Lower bound of an importance, as a share of the matrix's largest: columns that were never active in the
/// calibration text may be active in another.
const FLOOR: f32 = 1e-6;

/// Importance of each column of a matrix `[rows, cols]`: usually the mean square of the layer's input in that
/// column, the factor by which the squared error of a weight counts in that of the result.
///
/// A matrix that stacks several of the same shape, such as the experts of a layer, has importances for each
/// of them. Only ratios within one of them matter.
///
/// ```
/// use lm_kernels::Importance;
/// assert!(Importance::new(4, 3, &[1.0, 0.0, 0.5]).is_ok());
/// assert!(Importance::new(4, 3, &[0.0; 3]).is_err(), "without information");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Importance {
    cols: usize,
    /// Rows of each stacked matrix.
    rows: usize,
    /// `[matrices, cols]`, from [`FLOOR`] to 1.
    values: Vec<f32>,
}

impl Importance {
    /// Takes the importances of all columns: `[matrices, cols]`, of `matrices` stacked ones with the same
    /// number of rows.
    ///
    /// # Errors
    /// - [`Error::ImportanceShape`] when there are not `cols` values for each of several equal parts of the
    ///   rows
    /// - [`Error::ImportanceValue`] for a value that is negative or not finite, and for zeros alone
    pub fn new(rows: usize, cols: usize, values: &[f32]) -> Result<Self> {
        let matrices = values.len().checked_div(cols).unwrap_or(0);
        if matrices == 0 || matrices * cols != values.len() || !rows.is_multiple_of(matrices) {
            return Err(Error::ImportanceShape { rows, cols, got: values.len() });
        }
        let mut relative = Vec::with_capacity(values.len());
        for (matrix, values) in values.chunks_exact(cols).enumerate() {
            let bad = |value: &f32| !(value.is_finite() && *value >= 0.0);
            let largest = values.iter().copied().fold(0.0, f32::max);
            let wrong = values.iter().position(bad).or((largest == 0.0).then_some(0));
            if let Some(col) = wrong {
                return Err(Error::ImportanceValue { matrix, col, value: values[col] });
            }
            relative.extend(values.iter().map(|value| (value / largest).max(FLOOR)));
        }
        Ok(Self { cols, rows: rows / matrices, values: relative })
    }

    /// Importances of 32 columns in 16 rows; values beyond the matrix are arbitrary.
    #[inline(always)]
    pub(super) fn gather(&self, first_row: usize, first_col: usize, out: &mut [F32x16; GROUP]) {
        let matrix =
            |lane: usize| ((first_row + lane) / self.rows.max(1)).min(self.values.len() / self.cols - 1);
        for (column, out) in (first_col..self.cols).zip(out) {
            for lane in 0..LANES {
                out.0[lane] = self.values[matrix(lane) * self.cols + column];
            }
        }
    }

    /// Returns true if the importances are those of a matrix of this shape.
    pub(super) fn fits(&self, rows: usize, cols: usize) -> bool {
        cols == self.cols && rows * cols == self.rows * self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::isa::Isa;
    use super::super::super::testing::{Random, bits};
    use super::super::packing::PackTile;
    use super::super::{Arena, PackedMatrix, Packing, Source, WeightFormat};
    use super::*;

    /// Packs a matrix in pieces of 16 rows.
    fn pack(rows: usize, cols: usize, values: &[f32], importance: Option<&Importance>) -> PackedMatrix {
        let mut packing = Packing::new(&Arena::default(), WeightFormat::Q4, rows, cols).unwrap();
        if let Some(importance) = importance {
            packing = packing.with_importance(importance.clone());
        }
        for values in values.chunks(16 * cols) {
            packing.push(values.len() / cols, Source::F32(values)).unwrap();
        }
        packing.finish()
    }

    fn unpacked(packed: &PackedMatrix) -> Vec<f32> {
        let mut out = vec![0.0; packed.rows() * packed.cols()];
        let rows = out.chunks_mut(packed.cols()).enumerate();
        rows.for_each(|(row, out)| packed.dequantize_row(row, out));
        out
    }

    /// Squared error of each row, weighted by importance.
    fn errors(importance: &Importance, packed: &PackedMatrix, values: &[f32]) -> Vec<f64> {
        let unpacked = unpacked(packed);
        let errors: Vec<f32> = values.iter().zip(&unpacked).map(|(x, unpacked)| x - unpacked).collect();
        squares(importance, &errors)
    }

    /// Sum of the squares of each row, weighted by importance.
    fn squares(importance: &Importance, x: &[f32]) -> Vec<f64> {
        let cols = importance.cols;
        let of_row = |(row, x): (usize, &[f32])| {
            let weights = &importance.values[row / importance.rows * cols..][..cols];
            x.iter().zip(weights).map(|(x, weight)| f64::from(*weight) * f64::from(*x).powi(2)).sum()
        };
        x.chunks(cols).enumerate().map(of_row).collect()
    }

    /// Stacked matrices with values and importances of very different magnitudes.
    fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f32>, Vec<f32>)> {
        (1..3_usize, 1..6_usize, 1..400_usize).prop_flat_map(|(matrices, rows, cols)| {
            let value = prop_oneof![8 => -1.0..1.0_f32, 1 => -100.0..100.0_f32, 1 => Just(0.0_f32)];
            let importance = prop_oneof![6 => 0.1..1.0_f32, 2 => 1.0..1e4_f32, 1 => Just(0.0_f32)];
            (
                Just(matrices * rows),
                Just(cols),
                prop::collection::vec(value, matrices * rows * cols),
                prop::collection::vec(importance, matrices * cols),
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn importance_never_raises_the_weighted_error((rows, cols, values, importances) in matrices()) {
            let Ok(importance) = Importance::new(rows, cols, &importances) else { return Ok(()) };
            let weighted = errors(&importance, &pack(rows, cols, &values, Some(&importance)), &values);
            let plain = errors(&importance, &pack(rows, cols, &values, None), &values);
            // The search compares, in f32, the part of the squares that a scale explains.
            let squares = squares(&importance, &values);
            for (row, (weighted, plain)) in weighted.iter().zip(&plain).enumerate() {
                let rounding = 1e-6 * squares[row];
                prop_assert!(*weighted <= plain + rounding, "row {row}: {weighted} against {plain}, of {}", squares[row]);
            }
        }
    }

    #[test]
    fn important_columns_are_more_precise() {
        let (rows, cols) = (64, 512);
        let (values, mut random) = (Random(31).normal(rows * cols), Random(32));
        let importances: Vec<f32> = random.normal(cols).into_iter().map(|x| (3.0 * x).exp()).collect();
        let importance = Importance::new(rows, cols, &importances).unwrap();
        let sum = |packed| errors(&importance, &packed, &values).iter().sum::<f64>();
        let (weighted, plain) =
            (sum(pack(rows, cols, &values, Some(&importance))), sum(pack(rows, cols, &values, None)));
        assert!(weighted < 0.9 * plain, "{weighted} against {plain}");
    }

    #[test]
    fn each_stacked_matrix_has_its_own_importance() {
        let (rows, cols) = (24, 64);
        let values = Random(33).normal(2 * rows * cols);
        let importances: Vec<f32> = Random(34).normal(2 * cols).iter().map(|x| x.abs()).collect();
        let stacked =
            pack(2 * rows, cols, &values, Some(&Importance::new(2 * rows, cols, &importances).unwrap()));
        let of_each =
            values.chunks(rows * cols).zip(importances.chunks(cols)).flat_map(|(values, importances)| {
                unpacked(&pack(rows, cols, values, Some(&Importance::new(rows, cols, importances).unwrap())))
            });
        assert_eq!(bits(&unpacked(&stacked)), bits(&of_each.collect::<Vec<_>>()));
    }

    #[test]
    fn every_instruction_set_packs_the_same() {
        let (rows, cols) = (16, 300);
        let values = Random(35).normal(rows * cols);
        let importances: Vec<f32> = Random(36).normal(cols).iter().map(|x| x.abs()).collect();
        let importance = Importance::new(rows, cols, &importances).unwrap();
        let pack_on = |isa: Isa| {
            let mut out = vec![0_u32; WeightFormat::Q4.tile_bytes(cols).unwrap() / 4];
            let tile = PackTile {
                format: WeightFormat::Q4,
                source: Source::F32(&values),
                rows,
                cols,
                first_row: 0,
                importance: Some((&importance, 0)),
                out: bytemuck::cast_slice_mut(&mut out),
            };
            assert!(isa.run(tile).is_ok());
            out
        };
        Isa::supported().iter().for_each(|&isa| assert_eq!(pack_on(isa), pack_on(Isa::Scalar), "{isa}"));
    }

    #[test]
    fn importance_is_relative_to_the_matrix_maximum() {
        let importance = Importance::new(20, 2, &[2.0, 1.0, 0.0, 8.0]).unwrap();
        let mut columns = [F32x16::ZERO; GROUP];
        importance.gather(0, 0, &mut columns);
        let first = |lane: usize| [columns[0].0[lane], columns[1].0[lane]];
        assert_eq!((first(9), first(10)), ([1.0, 0.5], [FLOOR, 1.0]));
        assert!(importance.fits(20, 2) && !importance.fits(20, 4) && !importance.fits(10, 2));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (value, col) in [(f32::NAN, 1), (f32::INFINITY, 1), (-1.0, 1)] {
            let error = Importance::new(4, 2, &[1.0, value]).unwrap_err();
            assert!(
                matches!(error, Error::ImportanceValue { matrix: 0, col: got, .. } if got == col),
                "{error}"
            );
        }
        let error = Importance::new(4, 2, &[1.0, 1.0, 0.0, 0.0]).unwrap_err();
        assert!(matches!(error, Error::ImportanceValue { matrix: 1, col: 0, value: 0.0 }), "{error}");
        for (rows, cols, len) in
            [(4, 3, 4), (4, 1, 3), (4, 0, 1), (4, 2, 0), (0, 0, 0), (usize::MAX, usize::MAX, 3)]
        {
            let error = Importance::new(rows, cols, &vec![1.0; len]).unwrap_err();
            assert!(matches!(error, Error::ImportanceShape { .. }), "{rows} {cols} {len}: {error}");
        }
    }

    /// Only the last group of a block or of a row has values, full or not.
    #[test]
    fn last_group_uses_its_importance() {
        for cols in [20, 32, 256, 300] {
            let rows = 64;
            let first = (cols - 1) / GROUP * GROUP;
            let mut values = Random(37).normal(rows * cols);
            values.chunks_mut(cols).for_each(|row| row[..first].fill(0.0));
            let importances: Vec<f32> =
                Random(38).normal(cols).into_iter().map(|x| (3.0 * x).exp()).collect();
            let importance = Importance::new(rows, cols, &importances).unwrap();
            let sum = |packed| errors(&importance, &packed, &values).iter().sum::<f64>();
            let weighted = sum(pack(rows, cols, &values, Some(&importance)));
            let plain = sum(pack(rows, cols, &values, None));
            assert!(weighted < 0.95 * plain, "{cols} columns: {weighted} against {plain}");
        }
    }
}
