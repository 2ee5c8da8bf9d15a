//! ModernBERT: an encoder with pre-norm blocks, RoPE, a gated feed-forward block and a symmetric window in
//! two of three layers; its norms have no bias. Source: arXiv 2412.13663; `config.json` of
//! answerdotai/ModernBERT-base and Alibaba-NLP/gte-modernbert-base; `ModernBertConfig` of transformers for
//! the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::GgufArchitecture;
use crate::spec::{
    AttentionLayer, Bias, ClassifierActivation, ClassifierDense, ClassifierNorm, ClassifierSpec, DecoderSpec,
    Direction, EmbeddingNorm, EncoderSpec, Mixer, NormKind, NormPlacement, OutputHead, Pooling, RopesByType,
    Window, activation, windows,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["modernbert"],
    spec,
    weight_name,
    locations,
    gguf: &[&GGUF],
    ignored_prefixes: &["decoder.", "head."],
    defaults: r#"{
        "vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192,
        "norm_eps": 1e-5, "rms_norm_eps": 1e-5, "norm_bias": false, "local_attention": 128,
        "global_attn_every_n_layers": 3, "classifier_pooling": "cls", "classifier_bias": false,
        "classifier_activation": "gelu", "global_rope_theta": 160000.0, "local_rope_theta": 10000.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.layer_norm_epsilon", "norm_eps"),
        ("attention.sliding_window", "local_attention"),
        ("attention.sliding_window_pattern", "global_attn_every_n_layers"),
        ("hidden_activation", "hidden_activation"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ],
    rope: |model, _| match model.str("rope.scaling.type")? {
        None | Some("none") => Ok(()),
        Some(other) => Err(model.metadata.unsupported(&model.key("rope.scaling.type"), other, "none")),
    },
    read: |model, config| {
        // Of classifiers, which are refused below.
        model.size("classifier.pooling_type")?;
        // The converter writes either key.
        if let Some(epsilon) =
            config.get("rms_norm_eps").filter(|_| !config.contains_key("norm_eps")).cloned()
        {
            config.insert("norm_eps".to_owned(), epsilon);
        }
        for (key, tensor) in [
            ("attention_bias", "blk.0.attn_qkv.bias"),
            ("mlp_bias", "blk.0.ffn_up.bias"),
            ("norm_bias", "output_norm.bias"),
        ] {
            config.insert(key.to_owned(), model.tensor(tensor).is_some().into());
        }
        match model.tensor("cls.output.weight") {
            None => Ok(()),
            Some(_) => {
                Err(model.metadata.unsupported("cls.output.weight", "a classifier", "an embedding model"))
            }
        }
    },
    tensors: &[&[
        ("attn_norm", "attn_norm"),
        ("attn_output", "attn.Wo"),
        ("attn_qkv", "attn.Wqkv"),
        ("ffn_down", "mlp.Wo"),
        ("ffn_norm", "mlp_norm"),
        ("ffn_up", "mlp.Wi"),
        ("output_norm", "model.final_norm"),
        ("token_embd", "model.embeddings.tok_embeddings"),
        ("token_embd_norm", "model.embeddings.norm"),
    ]],
    direction: Direction::Bidirectional,
    ..GgufArchitecture::new("modern-bert", "modernbert")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    hidden_activation: String,
    norm_bias: bool,
    /// Width of the window: half of it on each side of the query.
    local_attention: usize,
    /// One layer in this many has full attention, the first one included.
    global_attn_every_n_layers: usize,
    global_rope_theta: f64,
    local_rope_theta: f64,
    classifier_pooling: String,
    classifier_bias: bool,
    classifier_activation: String,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let every = ModelConfig::size_of("global_attn_every_n_layers", keys.global_attn_every_n_layers)?;
    let config = &ModelConfig {
        hidden_act: Some(keys.hidden_activation.clone()),
        num_key_value_heads: None,
        ..config.with_norm_eps("norm_eps")?
    };
    let ropes = RopesByType::from_config(config, [keys.global_rope_theta, keys.local_rope_theta])?;
    let reach = keys.local_attention / 2;
    let windows = windows(config, Some(reach), |layer| !layer.is_multiple_of(every))?;
    let mut spec = DecoderSpec::llama(&config.without_rope())?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        attention.window = match window {
            Window::Sliding(reach) => Window::Symmetric(reach),
            full => full,
        };
    }
    ropes.apply(&mut spec)?;
    spec.layers[0].norms = NormPlacement::PreMlp;
    spec.norm_kind = NormKind::Layer(keys.norm_bias.into());
    spec.output_head = OutputHead::Absent;
    spec.classifier = classifier(config, &keys)?;
    spec.encoder = Some(EncoderSpec { embedding_norm: EmbeddingNorm::Present, ..EncoderSpec::PLAIN });
    Ok(spec)
}

fn classifier(config: &ModelConfig, keys: &Keys) -> Result<Option<ClassifierSpec>> {
    let Some(labels) = ClassifierSpec::labels(config)? else { return Ok(None) };
    let pooling = match keys.classifier_pooling.as_str() {
        "cls" => Pooling::Cls,
        "mean" => Pooling::Mean,
        other => return Err(unsupported("classifier_pooling", other, "cls, mean")),
    };
    let activation = activation("classifier_activation", &keys.classifier_activation)?;
    let dense = ClassifierDense {
        activation: ClassifierActivation::Of(activation),
        bias: keys.classifier_bias.into(),
        norm: ClassifierNorm::Present,
    };
    Ok(Some(ClassifierSpec { labels, pooling, dense: Some(dense), bias: Bias::Present }))
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.embeddings.tok_embeddings.weight".into(),
        Param::EmbeddingNorm => return "model.embeddings.norm.weight".into(),
        Param::EmbeddingNormBias => return "model.embeddings.norm.bias".into(),
        Param::OutputNorm => return "model.final_norm.weight".into(),
        Param::OutputNormBias => return "model.final_norm.bias".into(),
        Param::ClassifierDense(piece) => return format!("head.dense.{piece}"),
        Param::ClassifierNorm => return "head.norm.weight".into(),
        Param::ClassifierNormBias => return "head.norm.bias".into(),
        Param::Classifier(piece) => return format!("classifier.{piece}"),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let name = match param {
        LayerParam::MixerPreNorm => "attn_norm.weight".into(),
        LayerParam::MixerPreNormBias => "attn_norm.bias".into(),
        LayerParam::MlpPreNorm => "mlp_norm.weight".into(),
        LayerParam::MlpPreNormBias => "mlp_norm.bias".into(),
        LayerParam::AttentionOutput(piece) => format!("attn.Wo.{piece}"),
        LayerParam::Down(piece) => format!("mlp.Wo.{piece}"),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{name}")
}

/// Queries, keys and values are fused into one tensor, gate and up into another.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Mixer::Attention(attention) = &spec.layers[layer].mixer else { return Vec::new() };
    let inner = spec.layers[layer].mlp.dense_width().unwrap_or(0);
    let (tensor, piece, part, of) = fused(attention, inner, param).unwrap_or(("", Piece::Weight, 0..0, 0));
    match tensor {
        "" => Vec::new(),
        tensor => vec![TensorLocation::part(format!("model.layers.{layer}.{tensor}.{piece}"), part, of)],
    }
}

/// Tensor, piece, rows and number of rows of a parameter that is part of a tensor.
fn fused(
    attention: &AttentionLayer,
    inner: usize,
    param: LayerParam,
) -> Option<(&'static str, Piece, std::ops::Range<usize>, usize)> {
    let [width, _] = attention.widths();
    let of_qkv = |part: usize, piece| ("attn.Wqkv", piece, part * width..(part + 1) * width, 3 * width);
    let of_mlp = |part: usize, piece| ("mlp.Wi", piece, part * inner..(part + 1) * inner, 2 * inner);
    Some(match param {
        LayerParam::Query(piece) => of_qkv(0, piece),
        LayerParam::Key(piece) => of_qkv(1, piece),
        LayerParam::Value(piece) => of_qkv(2, piece),
        LayerParam::Gate(piece) => of_mlp(0, piece),
        LayerParam::Up(piece) => of_mlp(1, piece),
        _ => return None,
    })
}
