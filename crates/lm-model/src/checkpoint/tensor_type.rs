//! Element types of stored tensors, for all file formats.

use std::fmt;

use lm_formats::GgufTensorType;
use lm_kernels::{FloatDtype, GgmlType, WeightFormat};
use safetensors::Dtype;

use super::fp8_mxfp4_scales::MXFP4_COLUMNS;

/// Element type of a stored tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorType {
    /// Plain numbers.
    Plain(Dtype),
    /// Type of GGUF files only: quantised blocks.
    Gguf(GgufTensorType),
    /// MXFP4 codes, two neighbours per byte, with exponents in another tensor.
    Mxfp4,
    /// 8-bit floats with scales in another tensor.
    ScaledF8,
    /// Integers of AutoAWQ, GPTQ or compressed-tensors, which this block type represents losslessly.
    Grouped(GgmlType),
}

/// Loadable types, for messages.
pub(crate) const LOADABLE: &str = "F32, F16, BF16, F8_E4M3 where quantization_config has scales for it; in GGUF also Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_M, IQ1_S, MXFP4";

impl TensorType {
    /// Returns the type of a GGUF tensor.
    pub(crate) fn of_gguf(ty: GgufTensorType) -> Self {
        match ty.name() {
            "F64" => Self::Plain(Dtype::F64),
            "F32" => Self::Plain(Dtype::F32),
            "F16" => Self::Plain(Dtype::F16),
            "BF16" => Self::Plain(Dtype::BF16),
            "I64" => Self::Plain(Dtype::I64),
            "I32" => Self::Plain(Dtype::I32),
            "I16" => Self::Plain(Dtype::I16),
            "I8" => Self::Plain(Dtype::I8),
            _ => Self::Gguf(ty),
        }
    }

    /// Float type, if weights can be loaded from it.
    pub(crate) fn float(self) -> Option<FloatDtype> {
        match self {
            Self::Plain(Dtype::F32) => Some(FloatDtype::F32),
            Self::Plain(Dtype::F16) => Some(FloatDtype::F16),
            Self::Plain(Dtype::BF16) => Some(FloatDtype::Bf16),
            // The type they are decoded to.
            Self::ScaledF8 => Some(FloatDtype::F32),
            Self::Plain(_) | Self::Gguf(_) | Self::Mxfp4 | Self::Grouped(_) => None,
        }
    }

    /// Block type, if weights can be loaded from it.
    pub(crate) fn blocks(self) -> Option<GgmlType> {
        match self {
            Self::Mxfp4 => Some(GgmlType::Mxfp4),
            Self::Grouped(ty) => Some(ty),
            Self::Plain(_) | Self::ScaledF8 => None,
            Self::Gguf(ty) => ty.name().to_lowercase().parse().ok(),
        }
    }

    /// Format that holds a matrix of this type unchanged; `None` for types that are not loaded. 8-bit floats
    /// become bfloat16, their original type: with their scales they need more than 8 bits.
    pub(crate) fn format(self) -> Option<WeightFormat> {
        if self == Self::ScaledF8 {
            return Some(WeightFormat::Bf16);
        }
        match (self.float(), self.blocks()) {
            (Some(FloatDtype::F32), _) => Some(WeightFormat::F32),
            (Some(FloatDtype::F16), _) => Some(WeightFormat::F16),
            (Some(FloatDtype::Bf16), _) => Some(WeightFormat::Bf16),
            (None, blocks) => blocks.map(WeightFormat::Ggml),
        }
    }

    /// Bytes of `elements` elements; `None` if they are not whole blocks, or on overflow.
    pub(crate) fn bytes(self, elements: usize) -> Option<usize> {
        match self {
            Self::Plain(dtype) => Some(elements.checked_mul(dtype.bitsize())?.div_ceil(8)),
            Self::Gguf(ty) => ty.bytes(elements),
            Self::Mxfp4 => elements.is_multiple_of(MXFP4_COLUMNS).then_some(elements / 2),
            Self::ScaledF8 => Some(elements),
            Self::Grouped(GgmlType::Q8_0) => Some(elements),
            Self::Grouped(_) => Some(elements.div_ceil(2)),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(dtype) => dtype.fmt(f),
            Self::Gguf(ty) => ty.fmt(f),
            Self::Mxfp4 => f.write_str("MXFP4"),
            Self::ScaledF8 => Dtype::F8_E4M3.fmt(f),
            Self::Grouped(GgmlType::Q8_0) => f.write_str("I8 in groups"),
            Self::Grouped(_) => f.write_str("I4 in groups"),
        }
    }
}
