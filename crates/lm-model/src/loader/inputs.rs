//! Records of the inputs of a decoder's matrices.

use std::sync::Arc;

use lm_kernels::InputSums;

use crate::checkpoint::Param;

/// Sums of the squared inputs of each matrix of a decoder, from its first pass on.
#[derive(Debug, Default)]
pub(crate) struct InputRecords(pub(crate) Vec<(Param, Arc<InputSums>)>);

impl InputRecords {
    /// Adds a parameter that stacks `matrices` matrices of `cols` columns.
    pub(super) fn add(&mut self, param: Param, matrices: usize, cols: usize) -> Arc<InputSums> {
        let sums = Arc::new(InputSums::new(matrices, cols));
        self.0.push((param, Arc::clone(&sums)));
        sums
    }
}
