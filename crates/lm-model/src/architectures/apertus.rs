//! Apertus: feed-forward blocks without a gate whose activation, xIELU, has learned parameters in each layer;
//! a norm over each query and key head. Source: Apertus (arXiv 2509.14233); xIELU (arXiv 2411.13010);
//! `config.json` of swiss-ai/Apertus-8B-Instruct-2509; `ApertusConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::json;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::{ModelConfig, RopeParameters, invalid};
use crate::gguf::{Description, GgufArchitecture, put_biases};
use crate::spec::{DecoderSpec, Mlp, PlainActivation, QkNorm, xielu_of};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["apertus"],
    goldens: &["apertus-tiny", "apertus-tiny-bias", "apertus-tiny-relu2"],
    spec,
    weight_name,
    gguf: &[&GGUF],
    defaults: r#"{
        "hidden_act": "xielu", "max_position_embeddings": 65536, "rms_norm_eps": 1e-5, "rope_theta": 12000000.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        put_biases(model, config);
        let values = XIELU.map(|key| parameters(model, key));
        let [alpha_p, alpha_n, beta, eps] = values;
        config.insert(FROM_FILE.to_owned(), json!([alpha_p?, alpha_n?, beta?, eps?]));
        Ok(())
    },
    tensors: &[&[("attn_norm", "attention_layernorm"), ("ffn_norm", "feedforward_layernorm")]],
    ..GgufArchitecture::new("apertus", "apertus")
};

/// Keys of the activation's parameters, whatever the architecture.
const XIELU: [&str; 4] = ["xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"];
/// Key for the values of a GGUF file, by parameter and layer.
const FROM_FILE: &str = "xielu_of_layers";

/// Reads one of the activation's parameters: a number for each layer.
fn parameters(model: &Description<'_>, key: &str) -> Result<Vec<f32>> {
    let layers = model.num_layers()?;
    match model.metadata.floats(key)? {
        Some(values) if values.len() == layers && values.iter().all(|value| value.is_finite()) => Ok(values),
        values => {
            let got =
                values.map_or_else(|| "absent".to_owned(), |values| format!("a list of {}", values.len()));
            let expected = format!("a finite number for each of the {layers} layers");
            Err(model.metadata.invalid(key, got, expected))
        }
    }
}

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    xielu_of_layers: Option<Vec<Vec<f32>>>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig { mlp_bias: false, ..with_rope(config) }; // Not a key of Apertus.
    let mut gated = config.clone();
    gated.hidden_act = None; // Llama's block, which is replaced.
    let mut spec = DecoderSpec::llama(&gated)?;
    let mlp = Mlp::plain(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = mlp.clone());
    if let Some(values) = config.read::<Keys>()?.xielu_of_layers {
        put_activations(&mut spec, &values)?;
    }
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::PerHead);
    Ok(spec)
}

/// Sets the activations whose parameters a GGUF file has among its settings.
fn put_activations(spec: &mut DecoderSpec, values: &[Vec<f32>]) -> Result<()> {
    for (index, layer) in spec.layers.iter_mut().enumerate() {
        let of_layer: Option<Vec<f32>> =
            values.iter().map(|of_layers| of_layers.get(index).copied()).collect();
        let of_layer: Option<[f32; 4]> = of_layer.and_then(|values| values.try_into().ok());
        let of_layer = of_layer.ok_or_else(|| {
            invalid(FROM_FILE, format!("{} lists", values.len()), "four lists, a number for each layer")
        });
        if let Mlp::Plain(plain) = &mut layer.mlp {
            plain.activation = PlainActivation::Fixed(xielu_of(of_layer?));
        }
    }
    Ok(())
}

/// Returns the config with the reference's RoPE scaling where a file has none.
fn with_rope(config: &ModelConfig) -> ModelConfig {
    let mut config = config.clone();
    if config.rope_parameters.is_none() && config.rope_scaling.is_none() {
        config.rope_parameters = Some(RopeParameters {
            rope_type: Some("llama3".into()),
            rope_theta: Some(12_000_000.0),
            factor: Some(8.0),
            original_max_position_embeddings: Some(8192.0),
            low_freq_factor: Some(1.0),
            high_freq_factor: Some(4.0),
            ..RopeParameters::default()
        });
    }
    config
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::MixerPreNorm) => {
            format!("model.layers.{layer}.attention_layernorm.weight")
        }
        Param::Layer(layer, LayerParam::MlpPreNorm) => {
            format!("model.layers.{layer}.feedforward_layernorm.weight")
        }
        other => hugging_face_name(other),
    }
}
