//! `quantization_config`: quantisation of a checkpoint's stored matrices.

use lm_formats::Result;
use lm_kernels::WeightFormat;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{compressed_tensors, invalid, json_error, unsupported};

/// Version of the stored form of quantised matrices written by
/// [`ModelFolder::convert`](crate::ModelFolder::convert).
const VERSION: u32 = 2;
const METHOD: &str = "lm";
pub(super) const KEY: &str = "quantization_config";

/// Value of `quantization_config` for weights in this format.
pub(crate) fn describe(format: WeightFormat) -> Value {
    json!({"quant_method": METHOD, "format": format.to_string(), "version": VERSION})
}

/// Parses the format of a `quantization_config`.
fn read_description(value: &Value) -> Result<WeightFormat> {
    let known = [WeightFormat::Q8, WeightFormat::Q4];
    known.into_iter().find(|&format| describe(format) == *value).ok_or_else(|| {
        let known = known.map(|format| describe(format).to_string());
        unsupported(KEY, value, format!("absent, or {}", known.join(" or ")))
    })
}

/// Stored form of quantised matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantization {
    /// Blocks as [`ModelFolder::convert`](crate::ModelFolder::convert) writes them.
    Blocks(WeightFormat),
    /// MXFP4 for some matrices: codes in `…_blocks` and exponents in `…_scales`, as OpenAI published gpt-oss.
    Mxfp4,
    /// Group-wise integers with a scale and optionally a zero point for each group of inputs, of AutoAWQ,
    /// GPTQ or compressed-tensors.
    Groups(GroupFormat),
    /// 8-bit floats (e4m3) for some matrices, with scales in `…weight_scale_inv` or `…weight_scale`.
    Fp8 {
        /// Rows and columns per block, which share a scale; `None`: the whole matrix.
        block: Option<[usize; 2]>,
    },
}

/// Format of group-wise quantisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupFormat {
    pub(crate) packing: CodePacking,
    /// 4 or 8.
    pub(crate) bits: usize,
    /// Inputs per group, which share a scale; `None`: all inputs (per-channel scales).
    pub(crate) group: Option<usize>,
}

/// Packing of codes in 32-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodePacking {
    /// Eight outputs per word, in AutoAWQ's order.
    Awq,
    /// Consecutive inputs per word; zero points with consecutive outputs per word, minus `zero_offset`.
    Gptq {
        /// 1 in version 1 of the format, 0 in version 2.
        zero_offset: u8,
    },
    /// Consecutive inputs per word, a row per output; zero points, if any, with consecutive outputs per word
    /// (compressed-tensors).
    Words,
    /// Signed bytes, a row per output (compressed-tensors): codes minus 128.
    Bytes,
}

/// Supported quantisation methods.
const KNOWN: &str = "awq, compressed-tensors, fp8, gptq, lm, mxfp4";

impl Quantization {
    /// Parses a `quantization_config`.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        match value.get("quant_method").and_then(Value::as_str) {
            Some("lm") => Ok(Self::Blocks(read_description(value)?)),
            Some("mxfp4") => Ok(Self::Mxfp4),
            Some("fp8") => Self::fp8(value),
            Some("awq") => Self::awq(value),
            Some("gptq") => Self::gptq(value),
            Some("compressed-tensors") => compressed_tensors::read(value),
            Some(method) => Err(unsupported(&format!("{KEY}.quant_method"), method, KNOWN)),
            None => {
                let blocks = [WeightFormat::Q8, WeightFormat::Q4].map(|format| describe(format).to_string());
                Err(unsupported(KEY, value, format!("absent, {}, quant_method {KNOWN}", blocks.join(", "))))
            }
        }
    }

    fn awq(value: &Value) -> Result<Self> {
        let keys = GroupKeys::deserialize(value).map_err(json_error)?;
        if let Some(version) = keys.version.as_ref().filter(|version| !version.eq_ignore_ascii_case("gemm")) {
            return Err(unsupported(&format!("{KEY}.version"), version, "gemm"));
        }
        keys.format(CodePacking::Awq, &[4])
    }

    fn gptq(value: &Value) -> Result<Self> {
        let keys = GroupKeys::deserialize(value).map_err(json_error)?;
        let zero_offset = match keys.checkpoint_format.as_deref() {
            None | Some("gptq") => 1,
            Some("gptq_v2") => 0,
            Some(other) => {
                return Err(unsupported(&format!("{KEY}.checkpoint_format"), other, "gptq, gptq_v2"));
            }
        };
        keys.format(CodePacking::Gptq { zero_offset }, &[4, 8])
    }

    fn fp8(value: &Value) -> Result<Self> {
        #[derive(Deserialize)]
        struct Keys {
            fmt: Option<String>,
            scale_fmt: Option<String>,
            expert_dtype: Option<String>,
            #[serde(default = "default_block")]
            weight_block_size: Option<[usize; 2]>,
        }
        /// Default of transformers' `FineGrainedFP8Config`.
        fn default_block() -> Option<[usize; 2]> {
            Some([128, 128])
        }
        let keys = Keys::deserialize(value).map_err(json_error)?;
        let words = [
            ("fmt", keys.fmt, "e4m3"),
            ("scale_fmt", keys.scale_fmt, "float"),
            ("expert_dtype", keys.expert_dtype, "fp8"),
        ];
        for (key, word, known) in words {
            if let Some(word) = word.filter(|word| word != known) {
                return Err(unsupported(&format!("{KEY}.{key}"), word, known));
            }
        }
        match keys.weight_block_size {
            Some(block) if block.contains(&0) => {
                Err(invalid(&format!("{KEY}.weight_block_size"), format!("{block:?}"), "two sizes"))
            }
            block => Ok(Self::Fp8 { block }),
        }
    }
}

/// Keys of AutoAWQ and GPTQ.
#[derive(Deserialize)]
struct GroupKeys {
    bits: Option<usize>,
    /// -1: all inputs of a matrix.
    group_size: Option<i64>,
    version: Option<String>,
    checkpoint_format: Option<String>,
}

impl GroupKeys {
    fn format(&self, packing: CodePacking, known_bits: &[usize]) -> Result<Quantization> {
        let absent = |key: &str, expected: &str| invalid(&format!("{KEY}.{key}"), "absent", expected);
        let bits = self.bits.ok_or_else(|| absent("bits", "a number"))?;
        let group_size = self.group_size.ok_or_else(|| absent("group_size", "a number"))?;
        if !known_bits.contains(&bits) {
            let known: Vec<_> = known_bits.iter().map(usize::to_string).collect();
            return Err(unsupported(&format!("{KEY}.bits"), bits, known.join(", ")));
        }
        let group = match usize::try_from(group_size) {
            Ok(group) if group > 0 && group.is_multiple_of(32) => Some(group),
            Err(_) if group_size == -1 => None,
            _ => return Err(unsupported(&format!("{KEY}.group_size"), group_size, "-1, multiples of 32")),
        };
        Ok(Quantization::Groups(GroupFormat { packing, bits, group }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_round_trips_and_others_are_rejected() {
        for format in [WeightFormat::Q8, WeightFormat::Q4] {
            assert_eq!(read_description(&describe(format)).unwrap(), format);
        }
        for value in [
            json!({"quant_method": "gptq"}),
            json!({"quant_method": "lm", "format": "q4", "version": 1}),
            json!(1),
        ] {
            let error = read_description(&value).unwrap_err().to_string();
            assert!(error.contains("quantization_config") && error.contains("\"q8\""), "{error}");
        }
    }

    #[test]
    fn methods_are_distinguished_and_others_reported() {
        let read = |value: Value| Quantization::read(&value);
        assert_eq!(
            read(json!({"quant_method": "mxfp4", "modules_to_not_convert": []})).unwrap(),
            Quantization::Mxfp4
        );
        let fp8 =
            json!({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 64]});
        assert_eq!(read(fp8).unwrap(), Quantization::Fp8 { block: Some([128, 64]) });
        let whole = json!({"quant_method": "fp8", "weight_block_size": null, "fmt": "e4m3"});
        assert_eq!(read(whole).unwrap(), Quantization::Fp8 { block: None });
        for (value, named) in [
            (json!({"quant_method": "bitsandbytes"}), "quantization_config.quant_method` is bitsandbytes"),
            (json!({"quant_method": "gptq"}), "quantization_config.bits` is absent"),
            (json!({"quant_method": "awq", "bits": 3, "group_size": 128}), "quantization_config.bits` is 3"),
            (
                json!({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"}),
                "version` is gemv",
            ),
            (json!({"quant_method": "gptq", "bits": 4, "group_size": 0}), "group_size` is 0"),
            (
                json!({"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "marlin"}),
                "marlin",
            ),
            (json!({"quant_method": "fp8", "fmt": "e5m2"}), "quantization_config.fmt` is e5m2"),
            (json!({"quant_method": "fp8", "weight_block_size": [0, 1]}), "weight_block_size"),
            (json!({"quant_method": "lm", "format": "q4", "version": 1}), "quantization_config"),
            (json!(1), "quantization_config"),
        ] {
            let error = read(value).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
