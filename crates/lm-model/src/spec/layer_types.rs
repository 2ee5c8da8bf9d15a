//! `layer_types`: full-attention and sliding-window layers.

use lm_formats::Result;
use lm_kernels::KvGeometry;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{DecoderSpec, KvSource, RopeSpec, Window};
use crate::config::{ModelConfig, RopeParameters, invalid, json_error, unsupported};

const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
/// Returns each layer's window: `window` slots for sliding-window layers. Without `layer_types`, these are
/// the layers where `slides` is true, if there is a window.
pub(crate) fn windows(
    config: &ModelConfig,
    window: Option<usize>,
    slides: impl Fn(usize) -> bool,
) -> Result<Vec<Window>> {
    let Some(types) = &config.layer_types else {
        let of_layer = |layer| match window {
            Some(slots) if slides(layer) => Window::Sliding(slots),
            _ => Window::Full,
        };
        return Ok((0..config.num_hidden_layers).map(of_layer).collect());
    };
    check_count(types, config)?;
    let of_type = |kind: &String| match (kind.as_str(), window) {
        (FULL, _) => Ok(Window::Full),
        (SLIDING, Some(slots)) => Ok(Window::Sliding(slots)),
        (SLIDING, None) => Err(invalid(
            "sliding_window",
            "absent or unused",
            "a number: `layer_types` has sliding_attention",
        )),
        (other, _) => Err(unsupported("layer_types", other, format!("{FULL}, {SLIDING}"))),
    };
    types.iter().map(of_type).collect()
}

/// Maps `layer_types` to the values of an architecture's known types; `None` where the key is absent.
pub(crate) fn by_type<T: Clone>(config: &ModelConfig, known: &[(&str, T)]) -> Result<Option<Vec<T>>> {
    let Some(types) = &config.layer_types else { return Ok(None) };
    check_count(types, config)?;
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let of_type = |kind: &String| match known.iter().find(|(name, _)| name == kind) {
        Some((_, what)) => Ok(what.clone()),
        None => Err(unsupported("layer_types", kind, names())),
    };
    types.iter().map(of_type).collect::<Result<_>>().map(Some)
}

fn check_count(types: &[String], config: &ModelConfig) -> Result<()> {
    if types.len() == config.num_hidden_layers {
        return Ok(());
    }
    let expected = format!("one for each of the {} layers", config.num_hidden_layers);
    Err(invalid("layer_types", format!("a list of {}", types.len()), expected))
}

/// RoPE parameters of models whose full-attention and sliding-window layers have different frequencies.
pub(crate) struct RopesByType {
    full: RopeParameters,
    sliding: RopeParameters,
}

impl RopesByType {
    /// Reads `rope_parameters` by layer type as transformers 5 writes them, or the older `rope_theta` and
    /// `rope_scaling` of full-attention layers and `rope_local_base_freq` of sliding-window layers. The two
    /// bases are the defaults.
    pub(crate) fn from_config(config: &ModelConfig, [full_theta, sliding_theta]: [f64; 2]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Keys {
            rope_parameters: Option<Map<String, Value>>,
            rope_local_base_freq: Option<f64>,
        }
        let Keys { rope_parameters, rope_local_base_freq } = config.read()?;
        let scaling = || config.rope_scaling.clone().unwrap_or_default();
        let with_base = |parameters: RopeParameters, base: Option<f64>, default| {
            let rope_theta = parameters.rope_theta.or(base).or(Some(default));
            RopeParameters { rope_theta, ..parameters }
        };
        let (full, sliding) = match rope_parameters {
            None => (scaling(), RopeParameters::default()),
            Some(mut by_type) => (take(&mut by_type, FULL)?, take(&mut by_type, SLIDING)?),
        };
        Ok(Self {
            full: with_base(full, config.rope_theta, full_theta),
            sliding: with_base(sliding, rope_local_base_freq, sliding_theta),
        })
    }

    /// Assigns each attention layer the RoPE of its type.
    pub(crate) fn apply(&self, spec: &mut DecoderSpec) -> Result<()> {
        let context = spec.context_len;
        spec.ropes.clear();
        for (key, parameters, slides) in [(FULL, &self.full, false), (SLIDING, &self.sliding, true)] {
            let index = spec.ropes.len();
            let mut rope = None;
            for attention in
                spec.attention_mut().filter(|attention| attention.window.slots().is_some() == slides)
            {
                let key = format!("rope_parameters.{key}");
                rope = Some(RopeSpec::from_parameters(&key, parameters, attention.head_dim, context)?);
                attention.rope = Some(index);
            }
            spec.ropes.extend(rope);
        }
        Ok(())
    }
}

/// Takes the parameters of one layer type.
fn take(by_type: &mut Map<String, Value>, kind: &str) -> Result<RopeParameters> {
    let Some(parameters) = by_type.remove(kind).filter(|value| !value.is_null()) else {
        return Err(invalid(
            &format!("rope_parameters.{kind}"),
            "absent",
            "the parameters of layers of this type",
        ));
    };
    RopeParameters::deserialize(parameters).map_err(json_error)
}

/// Makes the last `count` layers read the keys and values of the last layer before them of the same type,
/// full attention or sliding window.
pub(crate) fn share_key_values(spec: &mut DecoderSpec, count: usize) -> Result<()> {
    let layers: Vec<_> = spec.attention_mut().map(|attention| attention.cache()).collect();
    let Some(first) = layers.len().checked_sub(count).filter(|&first| first > 0) else {
        let expected = format!("less than num_hidden_layers = {}", layers.len());
        return Err(invalid("num_kv_shared_layers", count, expected));
    };
    for (layer, attention) in spec.attention_mut().enumerate().skip(first) {
        let kind = |cache: &KvGeometry| cache.window.is_some();
        let owner = layers[..first].iter().rposition(|cache| kind(cache) == kind(&layers[layer]));
        let Some(owner) = owner.filter(|&owner| layers[owner] == layers[layer]) else {
            let expected = format!("layer {layer} to find an earlier one of its type and shape");
            return Err(invalid("num_kv_shared_layers", count, expected));
        };
        attention.kv_source = KvSource::SharedWith(owner);
    }
    Ok(())
}
