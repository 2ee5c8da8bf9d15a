//! `quantization_config` of compressed-tensors.
//!
//! Source: `compressed_tensors` 0.20, `quantization/quant_args.py`, `quant_config.py` and `compressors/`.

use std::collections::BTreeMap;

use lm_formats::Result;
use serde::Deserialize;
use serde_json::Value;

use super::quantization::KEY;
use super::{CodePacking, GroupFormat, Quantization, invalid, json_error, unsupported};

const FORMATS: &str = "float-quantized, int-quantized, naive-quantized, pack-quantized";

/// Keys that define how the matrices are stored, or affect the computation. Quantisation of inputs
/// (`input_activations`) is ignored: inputs are not rounded that way here.
#[derive(Deserialize)]
struct Keys {
    format: Option<String>,
    quantization_status: Option<String>,
    #[serde(default)]
    config_groups: BTreeMap<String, Scheme>,
    sparsity_config: Option<Sparsity>,
    kv_cache_scheme: Option<Value>,
    transform_config: Option<Value>,
    moe_sparsity_config: Option<Value>,
}

#[derive(Deserialize)]
struct Sparsity {
    format: Option<String>,
}

/// Storage scheme of some matrices.
#[derive(Deserialize)]
struct Scheme {
    format: Option<String>,
    weights: Option<Weights>,
    output_activations: Option<Value>,
}

#[derive(Deserialize)]
struct Weights {
    #[serde(default = "eight")]
    num_bits: usize,
    #[serde(default = "int", rename = "type")]
    kind: String,
    #[serde(default = "symmetric")]
    symmetric: bool,
    strategy: Option<String>,
    group_size: Option<i64>,
    block_structure: Option<[usize; 2]>,
    #[serde(default)]
    dynamic: Value,
    actorder: Option<Value>,
}

fn eight() -> usize {
    8
}

fn int() -> String {
    "int".into()
}

fn symmetric() -> bool {
    true
}

/// Parses the quantisation of all matrices that the config describes.
pub(super) fn read(value: &Value) -> Result<Quantization> {
    let keys = Keys::deserialize(value).map_err(json_error)?;
    keys.check()?;
    let format = keys.format.as_deref().unwrap_or("absent");
    let mut read = keys.config_groups.iter().map(|(name, scheme)| {
        let key = format!("{KEY}.config_groups.{name}");
        scheme.read(&key, format).map(|quantization| (key, quantization))
    });
    let none = || invalid(&format!("{KEY}.config_groups"), "empty", "a description of the weights");
    let (_, first) = read.next().ok_or_else(none)??;
    for other in read {
        let (key, other) = other?;
        if other != first {
            return Err(unsupported(&key, "another form than that of the first group", "one form for all"));
        }
    }
    Ok(first)
}

impl Keys {
    /// Fails on settings that affect the weights or the forward pass beyond the stored form of the matrices.
    fn check(&self) -> Result<()> {
        if let Some(status) = self.quantization_status.as_ref().filter(|status| *status != "compressed") {
            return Err(unsupported(&format!("{KEY}.quantization_status"), status, "compressed"));
        }
        let sparsity = self.sparsity_config.as_ref().and_then(|sparsity| sparsity.format.as_ref());
        if let Some(format) = sparsity.filter(|format| *format != "dense") {
            return Err(unsupported(&format!("{KEY}.sparsity_config.format"), format, "dense"));
        }
        absent("kv_cache_scheme", self.kv_cache_scheme.as_ref())?;
        absent("transform_config", self.transform_config.as_ref())?;
        absent("moe_sparsity_config", self.moe_sparsity_config.as_ref())
    }
}

/// Fails on a non-empty value.
fn absent(key: &str, value: Option<&Value>) -> Result<()> {
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    match value.filter(|value| !value.is_null() && !is_empty(value)) {
        None => Ok(()),
        Some(value) => Err(unsupported(&format!("{KEY}.{key}"), value, "null")),
    }
}

impl Scheme {
    fn read(&self, key: &str, format: &str) -> Result<Quantization> {
        let format = self.format.as_deref().unwrap_or(format);
        let Some(weights) = &self.weights else {
            return Err(unsupported(&format!("{key}.weights"), "null", "an object"));
        };
        if let Some(value) = &self.output_activations {
            return Err(unsupported(&format!("{key}.output_activations"), value, "null"));
        }
        let key = format!("{key}.weights");
        weights.check(&key)?;
        match format {
            "pack-quantized" => weights.integers(&key, CodePacking::Words, &[4, 8]),
            "int-quantized" => weights.integers(&key, CodePacking::Bytes, &[8]),
            "float-quantized" => weights.floats(&key),
            "naive-quantized" if weights.kind == "float" => weights.floats(&key),
            "naive-quantized" => weights.integers(&key, CodePacking::Bytes, &[8]),
            other => Err(unsupported(&format!("{KEY}.format"), other, FORMATS)),
        }
    }
}

impl Weights {
    fn check(&self, key: &str) -> Result<()> {
        if !matches!(self.dynamic, Value::Null | Value::Bool(false)) {
            return Err(unsupported(&format!("{key}.dynamic"), &self.dynamic, "false"));
        }
        // Order of quantising the inputs; `group` also stores them in that order.
        match &self.actorder {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(Value::String(order)) if matches!(order.as_str(), "weight" | "static") => Ok(()),
            Some(other) => {
                Err(unsupported(&format!("{key}.actorder"), other, "null, \"weight\", \"static\""))
            }
        }
    }

    /// Granularity of the scales; if absent, it follows from the group size.
    fn strategy(&self) -> &str {
        match (self.strategy.as_deref(), self.group_size) {
            (Some(strategy), _) => strategy,
            (None, None) => "tensor",
            (None, Some(-1)) => "channel",
            (None, Some(_)) => "group",
        }
    }

    fn integers(&self, key: &str, packing: CodePacking, known_bits: &[usize]) -> Result<Quantization> {
        self.check_kind(key, "int", known_bits)?;
        let group = match self.strategy() {
            "channel" => None,
            "group" => Some(self.group(key, 32)?),
            other => return Err(unsupported(&format!("{key}.strategy"), other, "channel, group")),
        };
        if self.num_bits == 8 && !self.symmetric {
            return Err(unsupported(&format!("{key}.symmetric"), false, "true in 8 bits"));
        }
        Ok(Quantization::Groups(GroupFormat { packing, bits: self.num_bits, group }))
    }

    fn floats(&self, key: &str) -> Result<Quantization> {
        self.check_kind(key, "float", &[8])?;
        let block = match self.strategy() {
            "tensor" => None,
            "channel" => Some([1, usize::MAX]),
            "group" => Some([1, self.group(key, 1)?]),
            "block" => {
                let key = format!("{key}.block_structure");
                let block = self.block_structure.filter(|block| !block.contains(&0));
                Some(block.ok_or_else(|| invalid(&key, format!("{:?}", self.block_structure), "two sizes"))?)
            }
            other => {
                let known = "block, channel, group, tensor";
                return Err(unsupported(&format!("{key}.strategy"), other, known));
            }
        };
        Ok(Quantization::Fp8 { block })
    }

    fn check_kind(&self, key: &str, kind: &str, known_bits: &[usize]) -> Result<()> {
        if self.kind != kind {
            return Err(unsupported(&format!("{key}.type"), &self.kind, kind));
        }
        if !known_bits.contains(&self.num_bits) {
            let known: Vec<_> = known_bits.iter().map(usize::to_string).collect();
            return Err(unsupported(&format!("{key}.num_bits"), self.num_bits, known.join(", ")));
        }
        Ok(())
    }

    /// Inputs per group, which share a scale.
    fn group(&self, key: &str, unit: usize) -> Result<usize> {
        let size = self.group_size.and_then(|size| usize::try_from(size).ok());
        size.filter(|&size| size > 0 && size.is_multiple_of(unit)).ok_or_else(|| {
            let value = self.group_size.map_or("absent".into(), |size| size.to_string());
            unsupported(&format!("{key}.group_size"), value, format!("multiples of {unit}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A config as llm-compressor writes it, with some keys changed.
    fn config(format: &str, weights: Value, more: Value) -> Value {
        let mut config = json!({
            "quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed",
            "config_groups": {"group_0": {
                "targets": ["Linear"], "weights": weights, "output_activations": null,
                "input_activations": {"num_bits": 8, "type": "int", "dynamic": true, "strategy": "token"},
            }},
            "ignore": ["lm_head"], "kv_cache_scheme": null, "sparsity_config": {}, "transform_config": {},
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    }

    #[test]
    fn compressed_formats_are_distinguished() {
        let int4 =
            json!({"num_bits": 4, "type": "int", "symmetric": false, "strategy": "group", "group_size": 128});
        let groups = |packing, bits, group| Quantization::Groups(GroupFormat { packing, bits, group });
        let channel = json!({"num_bits": 8, "type": "int", "strategy": "channel"});
        let float = |strategy: &str| json!({"num_bits": 8, "type": "float", "strategy": strategy, "block_structure": [128, 64]});
        for (format, weights, expected) in [
            ("pack-quantized", int4, groups(CodePacking::Words, 4, Some(128))),
            (
                "pack-quantized",
                json!({"num_bits": 8, "group_size": 32}),
                groups(CodePacking::Words, 8, Some(32)),
            ),
            ("pack-quantized", json!({"num_bits": 4, "group_size": -1}), groups(CodePacking::Words, 4, None)),
            ("int-quantized", channel.clone(), groups(CodePacking::Bytes, 8, None)),
            ("naive-quantized", channel, groups(CodePacking::Bytes, 8, None)),
            ("float-quantized", float("tensor"), Quantization::Fp8 { block: None }),
            ("float-quantized", float("channel"), Quantization::Fp8 { block: Some([1, usize::MAX]) }),
            ("naive-quantized", float("block"), Quantization::Fp8 { block: Some([128, 64]) }),
        ] {
            assert_eq!(read(&config(format, weights, json!({}))).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn unsupported_settings_are_reported() {
        let int4 = json!({"num_bits": 4, "strategy": "group", "group_size": 32});
        let with = |key: &str, value: Value| {
            let mut weights = int4.clone();
            weights[key] = value;
            weights
        };
        let packed = "pack-quantized";
        for (format, weights, more, named) in [
            ("marlin-24", int4.clone(), json!({}), "quantization_config.format` is marlin-24"),
            ("nvfp4-pack-quantized", int4.clone(), json!({}), "format` is nvfp4-pack-quantized"),
            ("int-quantized", int4.clone(), json!({}), "config_groups.group_0.weights.num_bits` is 4"),
            (packed, with("num_bits", json!(3)), json!({}), "weights.num_bits` is 3"),
            (packed, with("type", json!("float")), json!({}), "weights.type` is float"),
            (packed, with("group_size", json!(16)), json!({}), "weights.group_size` is 16"),
            (packed, with("strategy", json!("tensor")), json!({}), "weights.strategy` is tensor"),
            (packed, with("dynamic", json!(true)), json!({}), "weights.dynamic` is true"),
            (packed, with("actorder", json!("group")), json!({}), "weights.actorder` is \"group\""),
            (
                packed,
                json!({"num_bits": 8, "symmetric": false, "group_size": 32}),
                json!({}),
                "symmetric` is false",
            ),
            (packed, json!(null), json!({}), "config_groups.group_0.weights` is null"),
            (
                "float-quantized",
                json!({"num_bits": 8, "type": "float", "strategy": "block"}),
                json!({}),
                "block_structure",
            ),
            (
                packed,
                int4.clone(),
                json!({"quantization_status": "frozen"}),
                "quantization_status` is frozen",
            ),
            (packed, int4.clone(), json!({"kv_cache_scheme": {"num_bits": 8}}), "kv_cache_scheme` is {"),
            (packed, int4.clone(), json!({"transform_config": {"a": 1}}), "transform_config` is {"),
            (packed, int4.clone(), json!({"config_groups": {}}), "config_groups` is empty"),
            (
                packed,
                int4.clone(),
                json!({"sparsity_config": {"format": "sparse-24-bitmask"}}),
                "sparsity_config.format` is sparse-24",
            ),
        ] {
            let error = read(&config(format, weights, more)).unwrap_err().to_string();
            assert!(error.contains(named), "{error} does not say {named}");
        }
        let mut two = config(packed, int4, json!({}));
        two["config_groups"]["group_1"] = json!({"weights": {"num_bits": 8, "group_size": 32}});
        let error = read(&two).unwrap_err().to_string();
        assert!(error.contains("config_groups.group_1"), "{error}");
    }
}
