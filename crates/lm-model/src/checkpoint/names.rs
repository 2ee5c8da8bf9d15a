//! Parameters of a decoder and their names in Hugging Face checkpoints.

use std::borrow::Cow;
use std::fmt;

/// Parameter of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Param {
    Embedding,
    /// Learned embeddings of the positions.
    PositionEmbedding,
    OutputNorm,
    OutputNormBias,
    OutputHead,
    OutputHeadBias,
    TokenTypeEmbedding,
    /// Norm after the embeddings.
    EmbeddingNorm,
    EmbeddingNormBias,
    /// Layer of a classifier before its last projection.
    ClassifierDense(Piece),
    ClassifierNorm,
    ClassifierNormBias,
    /// Projection to the logits of labels.
    Classifier(Piece),
    /// Per-layer embedding table: one row for all layers.
    PerLayerEmbedding,
    /// Projection of the embedding to the per-layer inputs.
    PerLayerProjection,
    /// Norm of that projection's output.
    PerLayerProjectionNorm,
    /// AltUp projection of the embedding to another stream, by the stream's index minus one.
    AltUpProjection(usize),
    /// AltUp projection of another stream after the last layer, by the same index.
    AltUpUnembed(usize),
    Layer(usize, LayerParam),
}

/// Parameter of a decoder layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LayerParam {
    /// Pre-norm of the mixer.
    MixerPreNorm,
    MixerPreNormBias,
    /// Post-norm of the mixer.
    MixerPostNorm,
    MixerPostNormBias,
    Query(Piece),
    Key(Piece),
    Value(Piece),
    AttentionOutput(Piece),
    Sinks,
    QueryNorm,
    QueryNormBias,
    KeyNorm,
    KeyNormBias,
    /// First query projection of latent attention, before the one to the heads.
    LatentQueryDown(Piece),
    LatentQueryNorm,
    /// Query projection to the heads of latent attention; of each head the rotated part first.
    LatentQuery(Piece),
    /// Projection to the rotated part of the keys and the latent vector.
    LatentDown(Piece),
    LatentNorm,
    /// Key projections of all heads from the latent vector, each transposed.
    LatentKeys,
    /// Value projections of all heads from the latent vector.
    LatentValues,
    /// Projection to the two gates and the input of a convolution.
    ConvInput(Piece),
    /// Weight and bias of a depthwise convolution.
    Conv1d(Piece),
    ConvOutput(Piece),
    /// Projection to queries, keys and values of a delta net.
    DeltaQkv(Piece),
    /// Projection to its output gate.
    DeltaGate(Piece),
    /// Projection to the time step (`a`) of each head.
    DeltaA(Piece),
    /// Projection to the write strength (`beta`) of each head.
    DeltaBeta(Piece),
    /// Logarithms of the heads' decay rates (`A`).
    DeltaALog,
    DeltaDtBias,
    /// Norm of each head's output.
    DeltaNorm,
    DeltaOutput(Piece),
    /// Projection to the gates, the convolved rows and the time steps of a Mamba-2 layer.
    MambaInput(Piece),
    /// Logarithms of the heads' decay rates (`A`).
    MambaALog,
    MambaDtBias,
    /// Factors on the heads' inputs, added to their outputs (`D`).
    MambaSkip,
    /// Gated norm.
    MambaNorm,
    MambaOutput(Piece),
    /// Pre-norm of the feed-forward block.
    MlpPreNorm,
    MlpPreNormBias,
    /// Post-norm of the feed-forward block.
    MlpPostNorm,
    MlpPostNormBias,
    Gate(Piece),
    Up(Piece),
    Down(Piece),
    /// Parameters of an xIELU activation, before their softplus.
    XieluAlphaP,
    XieluAlphaN,
    XieluBeta,
    XieluEps,
    /// Router of experts.
    Router(Piece),
    /// Terms added to the experts' scores in the choice of a row's experts.
    RouterCorrection,
    /// Gate projections of all experts, concatenated.
    ExpertGates(Piece),
    ExpertUps(Piece),
    ExpertDowns(Piece),
    /// Gate projection of a shared expert.
    SharedGate(Piece),
    SharedUp(Piece),
    SharedDown(Piece),
    /// Projection of a row to the logit of the gate on its shared expert.
    SharedRowGate,
    /// Post-norm of a dense block parallel to experts.
    GatedPostNorm,
    /// Pre-norm of experts parallel to a dense block.
    ExpertsNorm,
    /// Post-norm of these experts.
    ExpertsPostNorm,
    /// Norm of their router's input.
    RouterNorm,
    /// Factors on the experts' routing weights.
    ExpertFactors,
    /// Projection of the rows to the gate of the per-layer input.
    PerLayerGate,
    /// Projection of the gated per-layer input to the rows.
    PerLayerOutput,
    /// Norm of that projection's output.
    PerLayerNorm,
    /// Factor on the layer's output.
    Scalar,
    /// Norm of the AltUp router's input.
    AltUpRouterNorm,
    AltUpRouter,
    /// AltUp projection of the router's output to the prediction coefficients.
    AltUpPrediction,
    /// AltUp projection of the router's output to the correction coefficients.
    AltUpCorrection,
    /// AltUp factors on the corrected active stream.
    AltUpCorrectionScale,
    LaurelLeft,
    LaurelRight,
    LaurelNorm,
}

/// The two parameters of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    Weight,
    Bias,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weight => "weight",
            Self::Bias => "bias",
        })
    }
}

/// Prefix of module names in PEFT's files.
pub(crate) const ADAPTER_PREFIX: &str = "base_model.model.";

/// Starts of the names in a checkpoint of a decoder without its head.
const OF_BASE_MODEL: [&str; 13] = [
    "embed_tokens.",
    "layers.",
    "norm.",
    "embedding_norm.",
    // GPT-2 and its contemporaries.
    "h.",
    "ln_f.",
    "wpe.",
    "wte.",
    // Encoders.
    "embeddings.",
    "encoder.layer.",
    "final_norm.",
    "pooler.",
    "transformer.layer.",
];

/// Returns true for a tensor of a checkpoint of a decoder without its head: its name has no `model.` before
/// it.
pub(crate) fn is_of_base_model(name: &str) -> bool {
    OF_BASE_MODEL.iter().any(|start| name.starts_with(start))
}

/// Maps a tensor name of a multimodal checkpoint, of a decoder without its head, or of an adapter to one, to
/// its name in a text-only checkpoint.
///
/// # Source
/// Published checkpoints of Gemma 3 (`language_model.model.…`), Gemma 3n (`model.language_model.…`), SmolVLM
/// (`model.text_model.…`), Nemotron-H (`backbone.…`, a text-only one), Qwen3-Embedding (`layers.…`), Falcon
/// (`transformer.h.…`), GPT-2 (`h.…`) and BERT (`bert.…`, with `encoder.layer.` for `layers.`; the oldest
/// call the parameters of norms `gamma` and `beta`).
pub(crate) fn text_model_name(name: &str) -> Cow<'_, str> {
    if let Some(adapted) = name.strip_prefix(ADAPTER_PREFIX) {
        return format!("{ADAPTER_PREFIX}{}", text_model_name(adapted)).into();
    }
    const PREFIXES: [&str; 10] = [
        "backbone.",
        "bert.",
        "distilbert.",
        "language_model.model.",
        "model.language_model.",
        "model.text_model.",
        "mpnet.",
        "nomic_bert.",
        "roberta.",
        "transformer.",
    ];
    let of_prefix = || PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let inner = Some(name).filter(|name| is_of_base_model(name)).or_else(of_prefix);
    match (inner, name.strip_prefix("language_model.lm_head.")) {
        (Some(inner), _) => format!("model.{}", norm_with_weight(&with_layers(inner))).into(),
        (None, Some(head)) => format!("lm_head.{head}").into(),
        (None, None) => name.into(),
    }
}

/// The name with `layers.` in place of an encoder's word for them.
fn with_layers(name: &str) -> Cow<'_, str> {
    let layer =
        ["encoder.layer.", "h.", "transformer.layer."].iter().find_map(|start| name.strip_prefix(start));
    layer.map_or(name.into(), |layer| format!("layers.{layer}").into())
}

/// The name of a norm's parameter in transformers, of that in TensorFlow's checkpoints.
fn norm_with_weight(name: &str) -> Cow<'_, str> {
    let of_norm = |(module, piece): (&str, &str)| match piece {
        "gamma" if module.ends_with("LayerNorm") => Some(format!("{module}.weight")),
        "beta" if module.ends_with("LayerNorm") => Some(format!("{module}.bias")),
        _ => None,
    };
    name.rsplit_once('.').and_then(of_norm).map_or(name.into(), Cow::from)
}

impl Param {
    /// Returns true for a parameter of two dimensions that is not multiplied as a matrix: its values are f32
    /// like those of vectors.
    pub(crate) fn stays_f32(self) -> bool {
        matches!(self, Self::Layer(_, LayerParam::Conv1d(_)))
    }

    /// Bias of a norm, for the norms that have one in some decoder.
    pub(crate) fn norm_bias(self) -> Option<Self> {
        match self {
            Self::OutputNorm => Some(Self::OutputNormBias),
            Self::EmbeddingNorm => Some(Self::EmbeddingNormBias),
            Self::ClassifierNorm => Some(Self::ClassifierNormBias),
            Self::Layer(layer, LayerParam::MixerPostNorm) => {
                Some(Self::Layer(layer, LayerParam::MixerPostNormBias))
            }
            Self::Layer(layer, LayerParam::MlpPostNorm) => {
                Some(Self::Layer(layer, LayerParam::MlpPostNormBias))
            }
            Self::Layer(layer, LayerParam::MixerPreNorm) => {
                Some(Self::Layer(layer, LayerParam::MixerPreNormBias))
            }
            Self::Layer(layer, LayerParam::MlpPreNorm) => {
                Some(Self::Layer(layer, LayerParam::MlpPreNormBias))
            }
            Self::Layer(layer, LayerParam::QueryNorm) => Some(Self::Layer(layer, LayerParam::QueryNormBias)),
            Self::Layer(layer, LayerParam::KeyNorm) => Some(Self::Layer(layer, LayerParam::KeyNormBias)),
            _ => None,
        }
    }

    /// Returns true if it stays in a float format when matrices are quantised.
    pub(crate) fn keeps_floats(self) -> bool {
        use LayerParam::{AltUpCorrection, AltUpPrediction, AltUpRouter, Conv1d, Router, SharedRowGate};
        let floats = matches!(self, Self::Layer(_, Conv1d(_) | Router(_) | SharedRowGate))
            || matches!(self, Self::PositionEmbedding | Self::TokenTypeEmbedding)
            || matches!(self, Self::Classifier(_) | Self::ClassifierDense(_));
        floats || matches!(self, Self::Layer(_, AltUpRouter | AltUpPrediction | AltUpCorrection))
    }
}

/// Returns transformers' name for a parameter of Llama and its relatives.
pub(crate) fn hugging_face_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.embed_tokens.weight".into(),
        Param::PositionEmbedding => return "model.wpe.weight".into(),
        Param::OutputNorm => return "model.norm.weight".into(),
        Param::OutputNormBias => return "model.norm.bias".into(),
        Param::OutputHead => return "lm_head.weight".into(),
        Param::OutputHeadBias => return "lm_head.bias".into(),
        Param::TokenTypeEmbedding => return "model.embed_token_types.weight".into(),
        Param::EmbeddingNorm => return "model.embed_norm.weight".into(),
        Param::EmbeddingNormBias => return "model.embed_norm.bias".into(),
        Param::ClassifierDense(piece) => return format!("score_dense.{piece}"),
        Param::ClassifierNorm => return "score_norm.weight".into(),
        Param::ClassifierNormBias => return "score_norm.bias".into(),
        Param::Classifier(piece) => return format!("score.{piece}"),
        Param::PerLayerEmbedding => return "model.embed_tokens_per_layer.weight".into(),
        Param::PerLayerProjection => return "model.per_layer_model_projection.weight".into(),
        Param::PerLayerProjectionNorm => return "model.per_layer_projection_norm.weight".into(),
        Param::AltUpProjection(stream) => return format!("model.altup_projections.{stream}.weight"),
        Param::AltUpUnembed(stream) => return format!("model.altup_unembed_projections.{stream}.weight"),
        Param::Layer(layer, param) => (layer, param),
    };
    match name_in_layer(param) {
        (module, Some(piece)) => format!("model.layers.{layer}.{module}.{piece}"),
        (name, None) => format!("model.layers.{layer}.{name}"),
    }
}

const WEIGHT: Option<Piece> = Some(Piece::Weight);
const BIAS: Option<Piece> = Some(Piece::Bias);

/// Name within a layer: a module and its piece, or the whole name.
fn name_in_layer(param: LayerParam) -> (&'static str, Option<Piece>) {
    match param {
        LayerParam::MixerPreNorm => ("input_layernorm", WEIGHT),
        LayerParam::MixerPreNormBias => ("input_layernorm", BIAS),
        LayerParam::Query(piece) => ("self_attn.q_proj", Some(piece)),
        LayerParam::Key(piece) => ("self_attn.k_proj", Some(piece)),
        LayerParam::Value(piece) => ("self_attn.v_proj", Some(piece)),
        LayerParam::AttentionOutput(piece) => ("self_attn.o_proj", Some(piece)),
        LayerParam::Sinks => ("self_attn.sinks", None),
        LayerParam::QueryNorm => ("self_attn.q_norm", WEIGHT),
        LayerParam::QueryNormBias => ("self_attn.q_norm", BIAS),
        LayerParam::KeyNorm => ("self_attn.k_norm", WEIGHT),
        LayerParam::KeyNormBias => ("self_attn.k_norm", BIAS),
        // Named by its position: with post-norm it follows attention, in Llama it precedes the feed-forward
        // block.
        LayerParam::MixerPostNorm | LayerParam::MlpPreNorm => ("post_attention_layernorm", WEIGHT),
        LayerParam::MlpPreNormBias | LayerParam::MixerPostNormBias => ("post_attention_layernorm", BIAS),
        LayerParam::MlpPostNorm => ("post_feedforward_layernorm", WEIGHT),
        LayerParam::MlpPostNormBias => ("post_feedforward_layernorm", BIAS),
        LayerParam::LatentQueryDown(piece) => ("self_attn.q_a_proj", Some(piece)),
        LayerParam::LatentQueryNorm => ("self_attn.q_a_layernorm", WEIGHT),
        LayerParam::LatentNorm => ("self_attn.kv_a_layernorm", WEIGHT),
        // Our own names: published checkpoints have other orders of rows, `Architecture::locations`.
        LayerParam::LatentQuery(piece) => ("self_attn.latent_q_proj", Some(piece)),
        LayerParam::LatentDown(piece) => ("self_attn.latent_proj", Some(piece)),
        LayerParam::LatentKeys => ("self_attn.k_b_proj", WEIGHT),
        LayerParam::LatentValues => ("self_attn.v_b_proj", WEIGHT),
        LayerParam::ConvInput(piece) => ("conv.in_proj", Some(piece)),
        LayerParam::Conv1d(piece) => ("conv.conv", Some(piece)),
        LayerParam::ConvOutput(piece) => ("conv.out_proj", Some(piece)),
        LayerParam::DeltaQkv(piece) => ("linear_attn.in_proj_qkv", Some(piece)),
        LayerParam::DeltaGate(piece) => ("linear_attn.in_proj_z", Some(piece)),
        LayerParam::DeltaA(piece) => ("linear_attn.in_proj_a", Some(piece)),
        LayerParam::DeltaBeta(piece) => ("linear_attn.in_proj_b", Some(piece)),
        LayerParam::DeltaALog => ("linear_attn.A_log", None),
        LayerParam::DeltaDtBias => ("linear_attn.dt_bias", None),
        LayerParam::DeltaNorm => ("linear_attn.norm", WEIGHT),
        LayerParam::DeltaOutput(piece) => ("linear_attn.out_proj", Some(piece)),
        LayerParam::MambaInput(piece) => ("mamba.in_proj", Some(piece)),
        LayerParam::MambaALog => ("mamba.A_log", None),
        LayerParam::MambaDtBias => ("mamba.dt_bias", None),
        LayerParam::MambaSkip => ("mamba.D", None),
        LayerParam::MambaNorm => ("mamba.norm", WEIGHT),
        LayerParam::MambaOutput(piece) => ("mamba.out_proj", Some(piece)),
        LayerParam::Gate(piece) => ("mlp.gate_proj", Some(piece)),
        LayerParam::Up(piece) => ("mlp.up_proj", Some(piece)),
        LayerParam::Down(piece) => ("mlp.down_proj", Some(piece)),
        LayerParam::XieluAlphaP => ("mlp.act_fn.alpha_p", None),
        LayerParam::XieluAlphaN => ("mlp.act_fn.alpha_n", None),
        LayerParam::XieluBeta => ("mlp.act_fn.beta", None),
        LayerParam::XieluEps => ("mlp.act_fn.eps", None),
        LayerParam::Router(piece) => ("mlp.gate", Some(piece)),
        // Our own names: published checkpoints store them in other ways, `Architecture::locations`.
        LayerParam::ExpertGates(piece) => ("mlp.experts.gate_proj", Some(piece)),
        LayerParam::ExpertUps(piece) => ("mlp.experts.up_proj", Some(piece)),
        LayerParam::ExpertDowns(piece) => ("mlp.experts.down_proj", Some(piece)),
        LayerParam::RouterCorrection => ("mlp.gate.e_score_correction_bias", None),
        LayerParam::SharedGate(piece) => ("mlp.shared_expert.gate_proj", Some(piece)),
        LayerParam::SharedUp(piece) => ("mlp.shared_expert.up_proj", Some(piece)),
        LayerParam::SharedDown(piece) => ("mlp.shared_expert.down_proj", Some(piece)),
        LayerParam::SharedRowGate => ("mlp.shared_expert_gate", WEIGHT),
        LayerParam::GatedPostNorm => ("post_feedforward_layernorm_1", WEIGHT),
        LayerParam::ExpertsNorm => ("pre_feedforward_layernorm_2", WEIGHT),
        LayerParam::ExpertsPostNorm => ("post_feedforward_layernorm_2", WEIGHT),
        LayerParam::RouterNorm => ("router.scale", None),
        LayerParam::ExpertFactors => ("router.per_expert_scale", None),
        LayerParam::PerLayerGate => ("per_layer_input_gate", WEIGHT),
        LayerParam::PerLayerOutput => ("per_layer_projection", WEIGHT),
        LayerParam::PerLayerNorm => ("post_per_layer_input_norm", WEIGHT),
        LayerParam::Scalar => ("layer_scalar", None),
        LayerParam::AltUpRouterNorm => ("altup.router_norm", WEIGHT),
        LayerParam::AltUpRouter => ("altup.modality_router", WEIGHT),
        LayerParam::AltUpPrediction => ("altup.prediction_coefs", WEIGHT),
        LayerParam::AltUpCorrection => ("altup.correction_coefs", WEIGHT),
        LayerParam::AltUpCorrectionScale => ("altup.correct_output_scale", None),
        LayerParam::LaurelLeft => ("laurel.linear_left", WEIGHT),
        LayerParam::LaurelRight => ("laurel.linear_right", WEIGHT),
        LayerParam::LaurelNorm => ("laurel.post_laurel_norm", WEIGHT),
    }
}
