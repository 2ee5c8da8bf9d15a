//! Sums of squared inputs of a weight, for importance matrices.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::Tensor;

use super::to_host;

/// Sums of the squares of the inputs that a weight was multiplied by, column by column:
/// [`Weight::with_inputs`](super::Weight::with_inputs).
///
/// A weight that stacks the matrices of several experts has sums for each of them.
#[derive(Debug)]
pub struct InputSums {
    cols: usize,
    matrices: Mutex<Vec<InputSum>>,
}

/// Sum over the inputs of one matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSum {
    /// Sum of the squares in each column; not finite if an input was not.
    pub squares: Vec<f64>,
    /// Number of input rows.
    pub rows: u64,
}

impl InputSums {
    /// Creates zeros for a weight of `cols` columns that stacks `matrices` matrices.
    pub fn new(matrices: usize, cols: usize) -> Self {
        let matrices = vec![InputSum { squares: vec![0.0; cols], rows: 0 }; matrices];
        Self { cols, matrices: Mutex::new(matrices) }
    }

    /// Returns the sums so far, by stacked matrix.
    pub fn matrices(&self) -> Vec<InputSum> {
        self.lock().clone()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Adds input rows of one matrix, `[rows, cols]`. A device that fails is reported when the results are
    /// read.
    pub(super) fn add(&self, matrix: usize, x: &Tensor<2>) {
        let Ok(x) = to_host(x.clone()) else { return };
        let sum = &mut self.lock()[matrix];
        for row in x.chunks_exact(self.cols.max(1)) {
            sum.rows += 1;
            sum.squares.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x).powi(2));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<InputSum>> {
        self.matrices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
