//! Element types of tensors, by their GGUF ids.

use std::fmt;

/// Element type of a tensor in a GGUF file: floats, integers, or blocks of quantised weights.
///
/// # Source
/// `GGMLQuantizationType` and `GGML_QUANT_SIZES` of the Python package `gguf` 0.19, with the types that later
/// releases add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GgufTensorType {
    id: u32,
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
}

/// All types: id, name, elements per block, bytes per block.
const ALL: [(u32, &str, usize, usize); 35] = [
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
];

impl GgufTensorType {
    /// Returns the type of an id; `None` if the id is unknown.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::all().find(|ty| ty.id == id)
    }

    /// Returns the type of a name, as `gguf` spells it: `Q4_K`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|ty| ty.name == name)
    }

    fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter().map(|(id, name, block_len, block_bytes)| Self { id, name, block_len, block_bytes })
    }

    /// Id in files.
    pub fn id(self) -> u32 {
        self.id
    }

    /// Name: `Q4_K`.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Elements per block; 1 for plain numbers.
    pub fn block_len(self) -> usize {
        self.block_len
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        self.block_bytes
    }

    /// Bytes of `elements` elements; `None` if they are not whole blocks, or on overflow.
    pub fn bytes(self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_len) {
            return None;
        }
        (elements / self.block_len).checked_mul(self.block_bytes)
    }
}

impl fmt::Display for GgufTensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_number_and_name() {
        assert!(ALL.is_sorted_by_key(|row| row.0));
        for ty in GgufTensorType::all() {
            assert_eq!(GgufTensorType::from_id(ty.id()), Some(ty));
            assert_eq!(GgufTensorType::from_name(ty.name()), Some(ty));
        }
        assert_eq!(GgufTensorType::from_id(4), None);
    }

    #[test]
    fn byte_counts_cover_whole_blocks() {
        let q4_k = GgufTensorType::from_name("Q4_K").unwrap();
        assert_eq!(q4_k.bytes(512), Some(288));
        assert_eq!(q4_k.bytes(500), None);
        assert_eq!(GgufTensorType::from_id(0).unwrap().bytes(usize::MAX), None);
    }
}
