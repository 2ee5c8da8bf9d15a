//! Samples of the weights for a model's fingerprint.

use super::Checkpoint;

/// Number of samples of a tensor.
const SAMPLES: usize = 8;
/// Length of a sample in bytes.
const SAMPLE_BYTES: usize = 64;

impl Checkpoint {
    /// Name, type, shape and samples of the bytes of each tensor: these differ between models of the same
    /// sizes. The pages read are released again.
    pub(crate) fn samples(&self) -> Vec<u8> {
        let mut samples = Vec::new();
        for (name, stored) in &self.tensors {
            samples.extend(format!("{name} {} {:?}", stored.ty, stored.shape).bytes());
            let file = &self.files[stored.file].1;
            let bytes = &file[stored.range.clone()];
            let step = (bytes.len() / SAMPLES).max(SAMPLE_BYTES);
            bytes.chunks(step).for_each(|part| samples.extend(&part[..part.len().min(SAMPLE_BYTES)]));
            file.release(stored.range.clone());
        }
        samples
    }
}
