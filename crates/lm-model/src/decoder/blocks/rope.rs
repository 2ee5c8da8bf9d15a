use std::sync::Arc;

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{RopeAngles, RopeTable, from_host};

use crate::batch::{Batch, Position};
use crate::spec::RopeSpec;

/// Rotary position embedding of some layers.
pub(crate) struct Rope {
    spec: RopeSpec,
    /// Table for all sequence lengths, where the frequencies do not depend on it.
    table: RopeTable,
    /// Axis of each pair's position.
    axes: Vec<usize>,
}

/// Rotation of the rows of one forward pass.
pub(crate) struct Rotation {
    angles: Arc<RopeAngles>,
    /// Factor on each row's queries, `[rows, 1, 1]`.
    query_scale: Option<Tensor<3>>,
}

impl Rope {
    pub(crate) fn new(spec: RopeSpec) -> Self {
        Self { table: spec.table(1), axes: spec.axes.of_pairs(spec.rotary_dim / 2), spec }
    }

    /// Computes the rotation of a batch's rows. RoPE that depends on the sequence length uses the final one,
    /// and for each row past it the length up to that row: cached keys keep the rotation of the call that
    /// wrote them.
    pub(crate) fn rotation(&self, batch: &Batch, device: &BurnDevice) -> Rotation {
        let positions = || batch.sequences.iter().flat_map(|sequence| sequence.positions.iter().copied());
        let mut angles = RopeAngles::default();
        if self.spec.scaling.depends_on_length() {
            for sequence in &batch.sequences {
                let len = |position: Position| sequence.final_len.max(position.max() as usize + 1);
                for rows in sequence.positions.chunk_by(|&one, &next| len(one) == len(next)) {
                    angles.append(&self.angles(&self.spec.table(len(rows[0])), rows.iter().copied()));
                }
            }
        } else {
            angles = self.angles(&self.table, positions());
        }
        let query_scale = self.spec.query_temperature.map(|temperature| {
            let factors: Vec<f32> =
                positions().map(|position| temperature.factor(position.temporal)).collect();
            let rows = factors.len();
            from_host(factors, [rows, 1, 1], device)
        });
        Rotation { angles: Arc::new(angles.with_pairing(self.spec.pairing)), query_scale }
    }

    fn angles(&self, table: &RopeTable, positions: impl Iterator<Item = Position>) -> RopeAngles {
        let positions: Vec<_> = positions.map(|p| [p.temporal, p.height, p.width]).collect();
        table.angles_by_axis(&positions, &self.axes)
    }
}

impl Rotation {
    /// Rotates and scales queries, `[rows, heads, head_dim]`.
    pub(crate) fn queries(&self, q: Tensor<3>) -> Tensor<3> {
        let q = lm_kernels::rope(q, &self.angles);
        match &self.query_scale {
            None => q,
            Some(scale) => q * scale.clone(),
        }
    }

    /// Rotates keys, `[rows, heads, head_dim]`.
    pub(crate) fn keys(&self, k: Tensor<3>) -> Tensor<3> {
        lm_kernels::rope(k, &self.angles)
    }
}
