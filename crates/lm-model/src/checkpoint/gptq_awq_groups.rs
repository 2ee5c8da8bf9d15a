//! Group-wise quantised matrices of AutoAWQ, GPTQ and compressed-tensors: integers with a scale and a zero
//! point for each group of inputs.
//!
//! `w[output, input] = (code − zero[group, output]) · scale[group, output]`. The difference is an integer of
//! at most five bits (of four if all zero points are 8, of eight for 8-bit codes around 128), so that ggml's
//! Q5_0, Q4_0 and Q8_0 represent the weights losslessly.
//!
//! Source: AutoAWQ 0.2 `WQLinear_GEMM` and its `AWQ_ORDER`; AutoGPTQ 0.7 `qlinear_cuda_old`, whose format
//! version 1 stores zero points minus one; compressed-tensors 0.20 `compressors/pack_quantized`.

use std::ops::Range;

use lm_formats::FileBytes;
use lm_kernels::{FloatDtype, GgmlType, Source};
use safetensors::Dtype;

use crate::config::{CodePacking, GroupFormat};

/// Columns per block of the three types.
const BLOCK: usize = 32;
/// Bits of a word of packed codes.
const WORD_BITS: usize = 32;

/// Suffixes of the names of a matrix's tensors, and the config keys about them.
pub(super) struct TensorSuffixes {
    pub(super) codes: &'static str,
    pub(super) zeros: &'static str,
    pub(super) scales: &'static str,
    pub(super) order: &'static str,
    pub(super) group_key: &'static str,
    pub(super) order_key: &'static str,
}

const GPTQ_NAMES: TensorSuffixes = TensorSuffixes {
    codes: "qweight",
    zeros: "qzeros",
    scales: "scales",
    order: "g_idx",
    group_key: "quantization_config.group_size",
    order_key: "quantization_config.desc_act",
};
const COMPRESSED_NAMES: TensorSuffixes = TensorSuffixes {
    codes: "weight_packed",
    zeros: "weight_zero_point",
    scales: "weight_scale",
    order: "weight_g_idx",
    group_key: "quantization_config.config_groups.*.weights.group_size",
    order_key: "quantization_config.config_groups.*.weights.actorder",
};

impl CodePacking {
    pub(super) fn names(self) -> TensorSuffixes {
        match self {
            Self::Awq | Self::Gptq { .. } => GPTQ_NAMES,
            Self::Words => COMPRESSED_NAMES,
            Self::Bytes => TensorSuffixes { codes: "weight", ..COMPRESSED_NAMES },
        }
    }

    /// Returns true if every matrix has zero points.
    pub(super) fn needs_zeros(self) -> bool {
        matches!(self, Self::Awq | Self::Gptq { .. })
    }

    /// Element type of codes and zero points.
    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::Bytes => Dtype::I8,
            Self::Awq | Self::Gptq { .. } | Self::Words => Dtype::I32,
        }
    }
}

/// Position of output `o % 8` in its word, in AutoAWQ's order.
const AWQ_POSITION: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Tensors of one matrix.
#[derive(Clone, Debug)]
pub(crate) struct StoredGroups {
    pub(super) format: GroupFormat,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// File index and byte range of zero points (`None`: all are the mid value) and of scales; the codes are
    /// the tensor itself.
    pub(super) zeros: Option<(usize, Range<usize>)>,
    pub(super) scales: (usize, Range<usize>),
    pub(super) scale_dtype: FloatDtype,
}

/// [`StoredGroups`] with the bytes of its tensors.
#[derive(Clone)]
pub(super) struct Groups<'a> {
    pub(super) stored: &'a StoredGroups,
    pub(super) ty: GgmlType,
    pub(super) codes: &'a [u8],
    pub(super) zeros: Option<&'a [u8]>,
    pub(super) scales: &'a [u8],
}

impl GroupFormat {
    /// Codes per element of their tensor.
    pub(super) fn per_word(self) -> usize {
        match self.packing {
            CodePacking::Bytes => 1,
            CodePacking::Awq | CodePacking::Gptq { .. } | CodePacking::Words => WORD_BITS / self.bits,
        }
    }

    /// Returns inputs and outputs of a matrix whose codes have this shape.
    pub(super) fn matrix(self, codes: &[usize]) -> Option<[usize; 2]> {
        let &[rows, cols] = codes else { return None };
        match self.packing {
            CodePacking::Awq => Some([rows, cols.checked_mul(self.per_word())?]),
            CodePacking::Gptq { .. } => Some([rows.checked_mul(self.per_word())?, cols]),
            CodePacking::Words | CodePacking::Bytes => Some([cols.checked_mul(self.per_word())?, rows]),
        }
    }

    /// Inputs per group, which share a scale.
    pub(super) fn group(self, inputs: usize) -> usize {
        self.group.unwrap_or(inputs)
    }

    /// Shapes of codes, zero points and scales of a matrix; `None` if it cannot be stored in this format.
    pub(super) fn shapes(self, inputs: usize, outputs: usize) -> Option<[[usize; 2]; 3]> {
        let (per_word, group) = (self.per_word(), self.group(inputs));
        let groups = inputs.checked_div(group)?;
        let (fits, shapes) = match self.packing {
            CodePacking::Awq | CodePacking::Gptq { .. } => {
                let codes = match self.packing {
                    CodePacking::Awq => [inputs, outputs / per_word],
                    _ => [inputs / per_word, outputs],
                };
                let shapes = [codes, [groups, outputs / per_word], [groups, outputs]];
                (outputs.is_multiple_of(per_word), shapes)
            }
            CodePacking::Words | CodePacking::Bytes => {
                let zeros = [outputs.div_ceil(per_word), groups];
                (true, [[outputs, inputs / per_word], zeros, [outputs, groups]])
            }
        };
        (fits && inputs.is_multiple_of(group) && group.is_multiple_of(BLOCK)).then_some(shapes)
    }

    fn code(self, words: &[u8], word: usize, position: usize) -> i32 {
        let word = words[4 * word..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let mask = u32::MAX >> (WORD_BITS - self.bits);
        (word >> (self.bits * position) & mask) as i32
    }
}

impl StoredGroups {
    /// Returns the code of a weight.
    fn weight(&self, codes: &[u8], input: usize, output: usize) -> i32 {
        let (format, per_word) = (self.format, self.format.per_word());
        match format.packing {
            CodePacking::Awq => {
                let words = self.outputs / per_word;
                format.code(codes, input * words + output / per_word, AWQ_POSITION[output % per_word])
            }
            CodePacking::Gptq { .. } => {
                format.code(codes, input / per_word * self.outputs + output, input % per_word)
            }
            CodePacking::Words => {
                format.code(codes, (output * self.inputs + input) / per_word, input % per_word)
            }
            CodePacking::Bytes => byte_code(codes, output * self.inputs + input),
        }
    }

    fn groups(&self) -> usize {
        self.inputs / self.format.group(self.inputs)
    }

    /// Index of the scale of a group of an output.
    fn scale(&self, group: usize, output: usize) -> usize {
        match self.format.packing {
            CodePacking::Awq | CodePacking::Gptq { .. } => group * self.outputs + output,
            CodePacking::Words | CodePacking::Bytes => output * self.groups() + group,
        }
    }

    /// Returns the zero point of a group of an output.
    fn zero(&self, zeros: Option<&[u8]>, group: usize, output: usize) -> i32 {
        let (format, per_word) = (self.format, self.format.per_word());
        let Some(zeros) = zeros else { return 1 << (format.bits - 1) };
        let by_groups = group * (self.outputs / per_word) + output / per_word;
        let by_outputs = output / per_word * self.groups() + group;
        match format.packing {
            CodePacking::Awq => format.code(zeros, by_groups, AWQ_POSITION[output % per_word]),
            CodePacking::Gptq { zero_offset } => {
                format.code(zeros, by_groups, output % per_word) + i32::from(zero_offset)
            }
            CodePacking::Words => format.code(zeros, by_outputs, output % per_word),
            CodePacking::Bytes => byte_code(zeros, by_outputs),
        }
    }

    /// Block type that represents the weights losslessly, depending on their zero points.
    pub(super) fn block_type(&self, zeros: Option<&[u8]>) -> Option<GgmlType> {
        let middle = 1 << (self.format.bits - 1);
        let centred = (0..self.groups())
            .all(|group| (0..self.outputs).all(|output| self.zero(zeros, group, output) == middle));
        match (self.format.bits, centred) {
            (4, true) => Some(GgmlType::Q4_0),
            (4, false) => Some(GgmlType::Q5_0),
            (8, true) => Some(GgmlType::Q8_0),
            _ => None,
        }
    }
}

impl Groups<'_> {
    /// Decodes rows, which are outputs, to blocks of [`Groups::ty`] and appends them to `out`.
    pub(super) fn decode(&self, rows: impl Iterator<Item = usize>, out: &mut Vec<u8>) {
        let stored = self.stored;
        let group = stored.format.group(stored.inputs);
        let mut scale = [0.0];
        for output in rows {
            for first in (0..stored.inputs).step_by(BLOCK) {
                let index = first / group;
                let zero = stored.zero(self.zeros, index, output);
                let values: [i32; BLOCK] =
                    std::array::from_fn(|i| stored.weight(self.codes, first + i, output) - zero);
                Source::LeBytes { dtype: stored.scale_dtype, bytes: self.scales }
                    .read(stored.scale(index, output), &mut scale);
                out.extend(half::f16::from_f32(scale[0]).to_le_bytes());
                push_block(self.ty, &values, out);
            }
        }
    }
}

/// Converts a signed byte to a code around 128.
fn byte_code(bytes: &[u8], index: usize) -> i32 {
    bytes.get(index).map_or(0, |&byte| i32::from(byte as i8)) + 128
}

/// Appends the integers of a block in ggml's layout, after its scale.
fn push_block(ty: GgmlType, values: &[i32; BLOCK], out: &mut Vec<u8>) {
    let nibbles = |offset: i32| {
        let code = move |value: i32| (value + offset) as u8 & 15;
        (0..BLOCK / 2).map(move |i| code(values[i]) | code(values[i + BLOCK / 2]) << 4)
    };
    match ty {
        GgmlType::Q4_0 => out.extend(nibbles(8)),
        GgmlType::Q5_0 => {
            let high =
                values.iter().rev().fold(0_u32, |bits, value| bits << 1 | ((value + 16) as u32 >> 4 & 1));
            out.extend(high.to_le_bytes());
            out.extend(nibbles(16));
        }
        _ => out.extend(values.iter().map(|&value| value as i8 as u8)),
    }
}

/// Returns the bytes of a file's range.
pub(super) fn bytes_of<'a>(
    files: &'a [(String, FileBytes)],
    (file, range): &(usize, Range<usize>),
) -> &'a [u8] {
    &files[*file].1[range.clone()]
}
