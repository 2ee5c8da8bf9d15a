//! Codes with scales in another tensor: MXFP4 and 8-bit floats in safetensors.

use std::ops::Range;

use lm_formats::FileBytes;
use lm_kernels::{FloatDtype, Source};

/// Scales of a tensor's codes.
#[derive(Clone, Debug)]
pub(crate) struct StoredScales {
    /// Index of their file.
    pub(super) file: usize,
    /// Byte range in the file.
    pub(super) range: Range<usize>,
    pub(super) kind: ScaleKind,
}

/// Kind of scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScaleKind {
    /// MXFP4 exponents: a byte for each [`MXFP4_COLUMNS`] columns of a row.
    Exponents,
    /// A factor for each block of rows and columns, `[row blocks, column blocks]`.
    Factors {
        dtype: FloatDtype,
        /// Rows and columns of a block.
        block: [usize; 2],
        /// Number of column blocks.
        per_row: usize,
    },
}

/// Bytes of the scales, and their kind.
#[derive(Clone)]
pub(super) struct Scales<'a> {
    pub(super) file: &'a FileBytes,
    pub(super) range: Range<usize>,
    pub(super) kind: ScaleKind,
}

/// Columns per MXFP4 block.
pub(super) const MXFP4_COLUMNS: usize = 32;
/// Bytes of its codes, two per byte (nibbles).
pub(super) const MXFP4_BYTES: usize = MXFP4_COLUMNS / 2;

impl Scales<'_> {
    /// Decodes row `row` from `codes` and appends it to `out`: as ggml's MXFP4 blocks, or as 32-bit floats.
    pub(super) fn decode(&self, row: usize, codes: &[u8], out: &mut Vec<u8>) {
        let bytes = &self.file[self.range.clone()];
        match self.kind {
            ScaleKind::Exponents => {
                let per_row = codes.len() / MXFP4_BYTES;
                mxfp4_blocks(codes, &bytes[row * per_row..(row + 1) * per_row], out);
            }
            ScaleKind::Factors { dtype, block: [rows, cols], per_row } => {
                let first = row / rows * per_row * dtype.bytes();
                let factors = &bytes[first..first + per_row * dtype.bytes()];
                let mut values = vec![0.0; per_row];
                Source::LeBytes { dtype, bytes: factors }.read(0, &mut values);
                for (codes, factor) in codes.chunks(cols).zip(values) {
                    out.extend(codes.iter().flat_map(|&code| (f8_e4m3(code) * factor).to_le_bytes()));
                }
            }
        }
    }

    /// Releases the memory of the scales of some rows.
    pub(super) fn release(&self, rows: Range<usize>, all: usize) {
        let part = |row: usize| self.range.start + self.range.len() * row / all.max(1);
        self.file.release(part(rows.start)..part(rows.end));
    }
}

/// Converts to ggml's MXFP4 blocks. `pairs` has neighbouring columns in a byte; ggml has columns that are 16
/// apart, after the exponent of the block.
fn mxfp4_blocks(pairs: &[u8], exponents: &[u8], out: &mut Vec<u8>) {
    for (pairs, &exponent) in pairs.as_chunks::<MXFP4_BYTES>().0.iter().zip(exponents) {
        let mut block = [0; 1 + MXFP4_BYTES];
        block[0] = exponent;
        for (index, byte) in block[1..].iter_mut().enumerate() {
            let [low, high] = [pairs[index / 2], pairs[(MXFP4_BYTES + index) / 2]];
            let shift = 4 * (index % 2);
            *byte = low >> shift & 15 | (high >> shift & 15) << 4;
        }
        out.extend(block);
    }
}

/// Decodes an 8-bit float with 4 exponent and 3 mantissa bits (e4m3), which has no infinities.
///
/// # Source
/// FP8 Formats for Deep Learning, arXiv 2209.05433.
fn f8_e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2.0_f32.powi(-9),
        _ => (8.0 + mantissa) * 2.0_f32.powi(exponent - 10),
    };
    if code >> 7 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;
    use serde_json::{Map, Value, json};

    use super::super::{Checkpoint, TensorLocation};
    use super::*;
    use crate::config::Quantization;

    #[test]
    fn fp8_values_match_the_format() {
        let known = [
            (0x00, 0.0),
            (0x01, 2.0_f32.powi(-9)),
            (0x07, 7.0 * 2.0_f32.powi(-9)),
            (0x08, 2.0_f32.powi(-6)),
            (0x38, 1.0),
            (0x3c, 1.5),
            (0x7e, 448.0),
            (0xb8, -1.0),
            (0xfe, -448.0),
        ];
        for (code, value) in known {
            assert_eq!(f8_e4m3(code), value, "{code:#x}");
        }
        assert!(f8_e4m3(0x7f).is_nan() && f8_e4m3(0xff).is_nan());
        assert!(f8_e4m3(0x80).is_sign_negative());
    }

    #[test]
    fn packed_codes_are_separated() {
        // Column c has code c % 16.
        let pairs: Vec<u8> = (0..MXFP4_BYTES as u8).map(|i| (2 * i % 16) | ((2 * i + 1) % 16) << 4).collect();
        let mut block = Vec::new();
        mxfp4_blocks(&pairs, &[120], &mut block);
        let expected: Vec<u8> = std::iter::once(120).chain((0..16).map(|i| i | i << 4)).collect();
        assert_eq!(block, expected);
    }

    /// A safetensors file of zero tensors, except for the given bytes.
    fn checkpoint(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> Checkpoint {
        let (mut header, mut data) = (Map::new(), Vec::new());
        for (name, dtype, shape, bytes) in tensors {
            let start = data.len();
            data.extend_from_slice(bytes);
            data.resize(start + shape.iter().product::<usize>() * dtype.bitsize() / 8, 0);
            let offsets = [start, data.len()];
            let info = json!({"dtype": dtype.to_string(), "shape": shape, "data_offsets": offsets});
            header.insert((*name).to_owned(), info);
        }
        let header = Value::Object(header).to_string().into_bytes();
        let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
        Checkpoint::of_file("f", FileBytes::Owned(file.into())).unwrap()
    }

    const FP8: Quantization = Quantization::Fp8 { block: Some([2, 2]) };

    #[test]
    fn factors_belong_to_their_block() {
        let one = 0x38;
        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut by_block = checkpoint(&[
            ("w", Dtype::F8_E4M3, &[3, 3], &[one; 9]),
            ("w_scale_inv", Dtype::F32, &[2, 2], &bytes),
            ("w.input_scale", Dtype::F32, &[], &[]),
        ]);
        by_block.attach_scales(FP8).unwrap();
        assert_eq!(by_block.infos().count(), 1);
        let location = TensorLocation::whole("w");
        let read = |checkpoint: &Checkpoint| -> Vec<f32> {
            let bytes = checkpoint.rows(&location).unwrap().read_all();
            bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        };
        assert_eq!(read(&by_block), [1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0]);
        let mut whole = checkpoint(&[
            ("w", Dtype::F8_E4M3, &[1, 2], &[one, 0xb8]),
            ("w_scale", Dtype::F32, &[], &2.5_f32.to_le_bytes()),
        ]);
        whole.attach_scales(FP8).unwrap();
        assert_eq!(read(&whole), [2.5, -2.5]);
    }

    #[test]
    fn mismatched_scales_are_rejected_by_name() {
        let attach = |quantization, tensors: &[(&str, Dtype, &[usize], &[u8])]| {
            checkpoint(tensors).attach_scales(quantization).unwrap_err().to_string()
        };
        let error =
            attach(FP8, &[("w", Dtype::F8_E4M3, &[3, 3], &[]), ("w_scale_inv", Dtype::F32, &[2, 1], &[])]);
        assert!(error.contains("w_scale_inv"), "{error}");
        let error = attach(FP8, &[("w", Dtype::F8_E4M3, &[2, 2], &[]), ("w_scale", Dtype::U8, &[2, 1], &[])]);
        assert!(error.contains("w_scale"), "{error}");
        let codes = ("w_blocks", Dtype::U8, &[2, 1, 16][..], &[][..]);
        let error = attach(Quantization::Mxfp4, &[codes]);
        assert!(error.contains("w_scales"), "{error}");
        for shape in [&[2, 2][..], &[1, 1], &[2], &[]] {
            let error = attach(Quantization::Mxfp4, &[codes, ("w_scales", Dtype::U8, shape, &[])]);
            assert!(error.contains("w_blocks"), "{error}");
        }
        let error = attach(Quantization::Mxfp4, &[codes, ("w_scales", Dtype::F32, &[2, 1], &[])]);
        assert!(error.contains("w_scales"), "{error}");
    }

    #[test]
    fn fp8_without_scales_is_rejected() {
        let mut alone = checkpoint(&[("w", Dtype::F8_E4M3, &[2, 2], &[])]);
        alone.attach_scales(FP8).unwrap();
        let error = alone.check(&TensorLocation::whole("w"), &[2, 2]).unwrap_err().to_string();
        assert!(error.contains("F8_E4M3"), "{error}");
    }
}
