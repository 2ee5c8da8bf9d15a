//! Encoding of importance matrices.

use lm_formats::{GgufEntries, GgufEntry, GgufHeader, GgufNewTensor, GgufTensorType};

use super::{CHUNK_COUNT, CHUNK_SIZE, COUNTS, DATASETS, FILE_TYPE, IMATRIX, ImportanceMatrix, SUMS};
use crate::error::Result;

/// Alignment of tensors. ggml rejects a file whose last tensor is not padded to it.
const ALIGNMENT: usize = 32;

impl ImportanceMatrix {
    /// Encodes the matrix as a GGUF file, as `llama-imatrix` writes it.
    ///
    /// # Errors
    /// [`lm_formats::Error::TensorShape`] when the sums exceed `usize`.
    pub fn to_gguf(&self) -> Result<Vec<u8>> {
        let mut keys = GgufEntries::default();
        keys.put(FILE_TYPE, GgufEntry::Text(IMATRIX.to_owned()));
        keys.put(DATASETS, GgufEntry::Texts(self.calibration.datasets.clone()));
        keys.put(CHUNK_COUNT, GgufEntry::Size(self.calibration.chunk_count));
        keys.put(CHUNK_SIZE, GgufEntry::Size(self.calibration.chunk_size));
        let (mut tensors, mut contents) = (Vec::new(), Vec::new());
        for (name, layer) in &self.layers {
            let matrices = layer.counts.len();
            for (suffix, cols, values) in [(SUMS, layer.cols, &layer.squares), (COUNTS, 1, &layer.counts)] {
                let ty = GgufTensorType::from_name("F32").expect("a type of GGUF");
                tensors.push(GgufNewTensor {
                    name: format!("{name}{suffix}"),
                    ty,
                    shape: vec![matrices, cols],
                });
                contents.push(values);
            }
        }
        let GgufHeader { mut bytes, tensors, .. } = GgufHeader::new(&keys, &tensors)?;
        for (tensor, values) in tensors.iter().zip(contents) {
            bytes.resize(tensor.range.start, 0);
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        Ok(bytes)
    }
}
