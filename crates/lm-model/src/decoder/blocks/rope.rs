use std::sync::Arc;

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{RopeAngles, RopeTable, from_host};

use crate::batch::{Batch, SequenceInput};
use crate::spec::RopeSpec;

/// Rotary position embedding of some layers.
pub(crate) struct Rope {
    spec: RopeSpec,
    /// Table for all sequence lengths, where the frequencies do not depend on it.
    table: RopeTable,
}

/// Rotation of the rows of one forward pass.
pub(crate) struct Rotation {
    angles: Arc<RopeAngles>,
    /// Factor on each row's queries, `[rows, 1, 1]`.
    query_scale: Option<Tensor<3>>,
}

impl Rope {
    pub(crate) fn new(spec: RopeSpec) -> Self {
        Self { table: spec.table(1), spec }
    }

    /// Computes the rotation of a batch's rows. RoPE that depends on the sequence length uses the final one, and for each row past
    /// it the length up to that row: cached keys keep the rotation of the call that wrote them.
    pub(crate) fn rotation(&self, batch: &Batch, device: &BurnDevice) -> Rotation {
        let of_sequence =
            |sequence: &SequenceInput| sequence.positions.iter().map(|p| p.temporal).collect::<Vec<_>>();
        let positions = || batch.sequences.iter().flat_map(of_sequence);
        let mut angles = RopeAngles::default();
        if self.spec.scaling.depends_on_length() {
            for sequence in &batch.sequences {
                let len = |position: u32| sequence.final_len.max(position as usize + 1);
                for rows in of_sequence(sequence).chunk_by(|&one, &next| len(one) == len(next)) {
                    angles.append(&self.spec.table(len(rows[0])).angles(rows));
                }
            }
        } else {
            angles = self.table.angles(&positions().collect::<Vec<_>>());
        }
        let query_scale = self.spec.query_temperature.map(|temperature| {
            let factors: Vec<f32> = positions().map(|position| temperature.factor(position)).collect();
            let rows = factors.len();
            from_host(factors, [rows, 1, 1], device)
        });
        Rotation { angles: Arc::new(angles), query_scale }
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
