//! `adapter_config.json` of PEFT.

use lm_formats::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Name of the file that this module reads, as shown in errors.
pub(super) const ADAPTER_CONFIG: &str = "adapter_config.json";

/// Keys of an adapter's config that affect its computation. Keys about training and initialisation are
/// ignored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AdapterConfig {
    peft_type: String,
    r: usize,
    lora_alpha: f64,
    #[serde(default)]
    use_rslora: bool,
    /// Ranks and alphas of individual modules, by name suffix.
    #[serde(default)]
    rank_pattern: Map<String, Value>,
    #[serde(default)]
    alpha_pattern: Map<String, Value>,
    bias: Option<Value>,
    /// All other keys, the unsupported ones among them.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Keys that change the forward pass and are not supported.
const UNSUPPORTED: [&str; 14] = [
    "alora_invocation_tokens",
    "arrow_config",
    "fan_in_fan_out",
    "kasa_config",
    "layer_replication",
    "lora_bias",
    "modules_to_save",
    "monteclora_config",
    "target_parameters",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "velora_config",
];

impl AdapterConfig {
    /// Fails on settings beyond two matrices parallel to a weight.
    pub(super) fn check(&self, file: &str) -> Result<()> {
        if self.peft_type != "LORA" {
            return Err(unsupported(file, "peft_type", &self.peft_type, "LORA"));
        }
        if let Some(bias) = self.bias.as_ref().filter(|bias| *bias != "none") {
            return Err(unsupported(file, "bias", bias, "none"));
        }
        let used = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => true,
        };
        for key in UNSUPPORTED {
            if let Some(value) = self.rest.get(key).filter(|value| used(value)) {
                return Err(unsupported(file, key, value, "absent"));
            }
        }
        for (key, patterns) in [("rank_pattern", &self.rank_pattern), ("alpha_pattern", &self.alpha_pattern)]
        {
            for (pattern, value) in patterns {
                if !pattern.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')) {
                    return Err(unsupported(file, key, pattern, "names of modules or their ends"));
                }
                let name = format!("{key}.{pattern}");
                match key {
                    "rank_pattern" => check_rank(file, &name, value)?,
                    _ => check_alpha(file, &name, value)?,
                }
            }
        }
        check_rank(file, "r", &self.r.into())?;
        check_alpha(file, "lora_alpha", &self.lora_alpha.into())
    }

    /// Rank of a module.
    pub(super) fn rank(&self, module: &str) -> usize {
        let own = of_module(&self.rank_pattern, module).and_then(Value::as_u64);
        own.map_or(self.r, |rank| usize::try_from(rank).unwrap_or(usize::MAX))
    }

    /// Factor on the low-rank product of a module.
    ///
    /// # Source
    /// LoRA, arXiv 2106.09685; with `use_rslora` rsLoRA, arXiv 2312.03732.
    pub(super) fn scale(&self, module: &str) -> f32 {
        let alpha = of_module(&self.alpha_pattern, module).and_then(Value::as_f64).unwrap_or(self.lora_alpha);
        let rank = self.rank(module) as f64;
        (alpha / if self.use_rslora { rank.sqrt() } else { rank }) as f32
    }
}

/// Maximum rank: that of the largest matrix.
const MAX_RANK: u64 = 1 << 24;

fn check_rank(file: &str, key: &str, rank: &Value) -> Result<()> {
    match rank.as_u64() {
        Some(1..=MAX_RANK) => Ok(()),
        _ => Err(invalid(file, key, rank, &format!("1 to {MAX_RANK}"))),
    }
}

fn check_alpha(file: &str, key: &str, alpha: &Value) -> Result<()> {
    match alpha.as_f64() {
        Some(number) if (number as f32).is_finite() => Ok(()),
        _ => Err(invalid(file, key, alpha, "a number of 32 bits")),
    }
}

/// Returns the first entry whose key is the module's name, or a suffix of it after a dot.
fn of_module<'a>(patterns: &'a Map<String, Value>, module: &str) -> Option<&'a Value> {
    let fits = |pattern: &str| {
        module.strip_suffix(pattern).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    patterns.iter().find(|(pattern, _)| fits(pattern)).map(|(_, value)| value)
}

fn unsupported(file: &str, key: &str, value: impl ToString, known: &str) -> Error {
    let (file, key, known) = (file.to_owned(), key.to_owned(), known.to_owned());
    Error::UnsupportedValue { file, key, value: value.to_string(), known }
}

fn invalid(file: &str, key: &str, value: impl ToString, expected: &str) -> Error {
    let (file, key, expected) = (file.to_owned(), key.to_owned(), expected.to_owned());
    Error::InvalidValue { file, key, value: value.to_string(), expected }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(more: Value) -> AdapterConfig {
        let mut config =
            json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none", "task_type": "CAUSAL_LM"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn scale_uses_rank_and_alpha_of_the_module() {
        let config =
            config(json!({"rank_pattern": {"q_proj": 16}, "alpha_pattern": {"layers.1.mlp.up_proj": 2}}));
        assert_eq!(
            (config.rank("model.layers.0.self_attn.q_proj"), config.rank("model.layers.0.xq_proj")),
            (16, 4)
        );
        assert_eq!(config.scale("model.layers.0.self_attn.q_proj"), 0.5);
        assert_eq!(config.scale("model.layers.1.mlp.up_proj"), 0.5);
        assert_eq!(config.scale("model.layers.11.mlp.up_proj"), 2.0);
        assert_eq!(super::tests::config(json!({"use_rslora": true})).scale("x"), 4.0);
    }

    #[test]
    fn unsupported_adapter_keys_are_rejected_by_name() {
        for (more, expected) in [
            (json!({"peft_type": "IA3"}), "`peft_type` is IA3"),
            (json!({"bias": "all"}), "`bias` is \"all\""),
            (json!({"use_dora": true}), "`use_dora` is true"),
            (json!({"modules_to_save": ["lm_head"]}), "`modules_to_save` is [\"lm_head\"]"),
            (json!({"rank_pattern": {".*q_proj": 3}}), "`rank_pattern` is .*q_proj"),
            (json!({"alpha_pattern": {"q_proj": "3"}}), "`alpha_pattern.q_proj` is \"3\""),
        ] {
            let error = config(more).check("a").unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
        config(json!({"use_dora": false, "modules_to_save": null, "layer_replication": []}))
            .check("a")
            .unwrap();
    }
}
