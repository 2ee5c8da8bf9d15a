//! Specification of a decoder as data.

mod altup;
mod attention;
mod bias;
mod classifier;
pub(crate) mod deepseek_moe;
mod delta_net;
mod encoder;
pub(crate) mod expert_tensors;
mod experts;
mod latent_attention;
mod layer_types;
mod mamba2;
mod mamba2_keys;
mod mlp;
mod model_output;
mod norms;
mod per_layer;
mod pooling;
mod rope;
mod short_conv;

pub(crate) use altup::{AltUpSpec, CorrectionScale};
pub(crate) use attention::{AttentionLayer, KvSource, OutputGate, QkNorm, Sinks, Window};
pub(crate) use bias::{Bias, linear_params};
pub(crate) use classifier::{ClassifierActivation, ClassifierDense, ClassifierNorm, ClassifierSpec};
pub(crate) use delta_net::DeltaNetLayer;
pub use encoder::Direction;
pub(crate) use encoder::{EmbeddingNorm, EncoderSpec};
pub(crate) use experts::{
    EXPERT_KEYS, ExpertGroups, ExpertKeys, ExpertsSpec, RouterScores, RouterSpec, RoutingNorm,
};
pub(crate) use latent_attention::LatentAttentionLayer;
pub(crate) use layer_types::{RopesByType, by_type, share_key_values, windows};
pub(crate) use mamba2::{GatedNorm, Mamba2Keys, Mamba2Layer};
pub(crate) use mamba2_keys::{HybridKeys, LimitEnd, put_mamba2, time_step_limit};
pub(crate) use mlp::{
    DENSE, DenseBranch, GatedParams, GatedSpec, Mlp, PlainActivation, PlainSpec, Sparsity, activation,
    xielu_of,
};
pub use model_output::ModelOutput;
pub(crate) use norms::{NormKind, NormPlacement, NormWeight, OutputNorm};
pub(crate) use per_layer::PerLayerInputs;
pub use pooling::Pooling;
pub(crate) use rope::{QueryTemperature, RopeAxes, RopeScaling, RopeSpec};
pub(crate) use short_conv::ShortConvLayer;

use lm_formats::Result;
use lm_kernels::{CacheLayout, HeadOrder, LayerCache};

use crate::checkpoint::{LayerParam, Param};
use crate::config::ModelConfig;

/// Decoder specification: shared settings, and each layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DecoderSpec {
    /// Number of embedding rows and width of the logits.
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) context_len: usize,
    pub(crate) norm_kind: NormKind,
    /// Epsilon added to the mean square or to the variance in every norm.
    pub(crate) norm_eps: f32,
    pub(crate) norm_weight: NormWeight,
    pub(crate) output_norm: OutputNorm,
    /// Factor on embeddings of token ids.
    pub(crate) embedding_scale: Option<f32>,
    /// Factor on a block's output before the residual add.
    pub(crate) residual_scale: Option<f32>,
    /// Learned embeddings of positions, which are added to those of tokens.
    pub(crate) learned_positions: Option<PositionTable>,
    pub(crate) output_head: OutputHead,
    /// Head for labels, in place of the output head.
    pub(crate) classifier: Option<ClassifierSpec>,
    /// Bias of the output head.
    pub(crate) head_bias: Bias,
    /// Factor on the logits.
    pub(crate) logit_scale: Option<f32>,
    /// Soft cap `c`: logits become `c · tanh(logits / c)`, after `logit_scale`.
    pub(crate) logit_soft_cap: Option<f32>,
    /// RoPEs in use; an attention layer refers to one by its index.
    pub(crate) ropes: Vec<RopeSpec>,
    pub(crate) per_layer_inputs: Option<PerLayerInputs>,
    /// `None`: a single residual stream.
    pub(crate) streams: Option<AltUpSpec>,
    pub(crate) bidirectional: BidirectionalLayers,
    /// `None`: a decoder.
    pub(crate) encoder: Option<EncoderSpec>,
    pub(crate) layers: Vec<LayerSpec>,
}

/// A parameter of a layer with its shape, `[out, in]` or `[len]`.
type NamedShape = (LayerParam, Vec<usize>);

/// Decoder layer: a token mixer, then a feed-forward block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayerSpec {
    pub(crate) mixer: Mixer,
    pub(crate) mlp: Mlp,
    pub(crate) norms: NormPlacement,
    pub(crate) scalar: LayerScalar,
}

/// Presence of a learned factor on the layer's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerScalar {
    Absent,
    Present,
}

/// Token mixer: the block that lets a token read earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mixer {
    Attention(AttentionLayer),
    LatentAttention(LatentAttentionLayer),
    ShortConv(ShortConvLayer),
    DeltaNet(DeltaNetLayer),
    Mamba2(Mamba2Layer),
    /// None: the layer is a feed-forward block alone.
    Absent,
}

/// Queries of an attention layer, which determine its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// `num_heads * head_dim`.
    pub query_width: usize,
    /// Sliding window in slots; `None` for full attention.
    pub window: Option<usize>,
}

/// Attention layers where the rows of a bidirectional span see each other; in the others they are causal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BidirectionalLayers {
    All,
    /// Those with a sliding window.
    Sliding,
}

/// Table of learned embeddings of absolute positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PositionTable {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Row of a text's first token.
    pub(crate) first: usize,
}

/// Matrix that projects the last hidden state to logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputHead {
    /// The embedding matrix, shared.
    Tied,
    /// A separate matrix.
    Separate,
    /// None: the model gives hidden states or labels.
    Absent,
}

impl DecoderSpec {
    /// Builds the spec of a config as Llama reads it; other architectures change the differences.
    pub(crate) fn llama(config: &ModelConfig) -> Result<Self> {
        let attention = AttentionLayer::llama(config)?;
        let rope = RopeSpec::from_config(config, attention.head_dim)?;
        let classifier = ClassifierSpec::of_decoder(config)?;
        let layer = LayerSpec {
            mixer: Mixer::Attention(attention),
            mlp: Mlp::gated(config)?,
            norms: NormPlacement::Pre,
            scalar: LayerScalar::Absent,
        };
        Ok(Self {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            context_len: rope.context_len(config.max_position_embeddings),
            norm_kind: NormKind::Rms,
            norm_eps: config.rms_norm_eps as f32,
            norm_weight: NormWeight::AsStored,
            embedding_scale: None,
            residual_scale: None,
            learned_positions: None,
            output_norm: OutputNorm::Present,
            output_head: match (&classifier, config.tie_word_embeddings) {
                (Some(_), _) => OutputHead::Absent,
                (None, true) => OutputHead::Tied,
                (None, false) => OutputHead::Separate,
            },
            classifier,
            head_bias: Bias::Absent,
            logit_scale: None,
            logit_soft_cap: None,
            ropes: vec![rope],
            per_layer_inputs: None,
            streams: None,
            bidirectional: BidirectionalLayers::All,
            encoder: None,
            layers: vec![layer; config.num_hidden_layers],
        })
    }

    /// [`DecoderSpec::llama`], with RoPE on a part of each head where the config says so.
    pub(crate) fn partial_rotary(config: &ModelConfig) -> Result<Self> {
        let (key, parameters) = config.rope_parameters();
        let (head_dim, context_len) = (config.head_dim()?, config.max_position_embeddings);
        let rope = RopeSpec::from_parameters(key, &parameters, head_dim, context_len)?;
        let spec = Self::llama(&config.without_rope())?;
        Ok(Self { context_len: rope.context_len(context_len), ropes: vec![rope], ..spec })
    }

    /// [`DecoderSpec::llama`] without RoPE.
    pub(crate) fn without_rope(config: &ModelConfig) -> Result<Self> {
        let mut spec = Self::llama(&config.without_rope())?;
        spec.ropes.clear();
        spec.attention_mut().for_each(|attention| attention.rope = None);
        Ok(spec)
    }

    /// As [`DecoderSpec::attention`], mutably.
    pub(crate) fn attention_mut(&mut self) -> impl Iterator<Item = &mut AttentionLayer> {
        self.layers.iter_mut().filter_map(|layer| match &mut layer.mixer {
            Mixer::Attention(attention) => Some(attention),
            _ => None,
        })
    }

    /// Iterates over the attention layers, first to last.
    pub(crate) fn attention(&self) -> impl Iterator<Item = &AttentionLayer> {
        self.layers.iter().filter_map(|layer| layer.mixer.attention())
    }

    /// Reading direction.
    pub(crate) fn direction(&self) -> Direction {
        match self.encoder {
            None => Direction::Causal,
            Some(_) => Direction::Bidirectional,
        }
    }

    /// Output beyond hidden states.
    pub(crate) fn output(&self) -> ModelOutput {
        match (&self.classifier, self.output_head) {
            (Some(ClassifierSpec { labels, pooling, .. }), _) => {
                ModelOutput::Labels { count: *labels, pooling: *pooling }
            }
            (None, OutputHead::Absent) => ModelOutput::HiddenStates,
            (None, OutputHead::Tied | OutputHead::Separate) => ModelOutput::Tokens,
        }
    }

    /// Cache layout of the layers.
    pub(crate) fn cache_layout(&self) -> CacheLayout {
        if self.encoder.is_some() {
            return CacheLayout::empty();
        }
        CacheLayout::new(self.layers.iter().map(|layer| layer.mixer.cache(self.hidden_size)))
    }

    /// All parameters with their shapes, `[out, in]` or `[len]`.
    pub(crate) fn params(&self) -> Vec<(Param, Vec<usize>)> {
        let embedding = vec![self.vocab_size, self.hidden_size];
        let mut params = vec![(Param::Embedding, embedding.clone())];
        if self.output_norm == OutputNorm::Present {
            params.push((Param::OutputNorm, vec![self.hidden_size]));
        }
        params.extend(
            self.learned_positions
                .map(|table| (Param::PositionEmbedding, vec![table.rows, self.hidden_size])),
        );
        params.extend(self.encoder.iter().flat_map(|encoder| encoder.params(self.hidden_size)));
        params.extend(self.classifier.iter().flat_map(|classifier| classifier.params(self.hidden_size)));
        let of_norm = |(param, shape): &(Param, Vec<usize>)| Some((self.norm_bias(*param)?, shape.clone()));
        let biases: Vec<_> = params.iter().filter_map(of_norm).collect();
        params.extend(biases);
        if self.output_head == OutputHead::Separate {
            params.push((Param::OutputHead, embedding));
        }
        if self.head_bias == Bias::Present {
            params.push((Param::OutputHeadBias, vec![self.vocab_size]));
        }
        let inputs = self.per_layer_inputs.iter();
        params.extend(inputs.flat_map(|inputs| inputs.params(self.hidden_size, self.layers.len())));
        params.extend(self.streams.iter().flat_map(|streams| streams.params(self.hidden_size)));
        for (index, layer) in self.layers.iter().enumerate() {
            let of_layer = |(param, shape)| (Param::Layer(index, param), shape);
            let of_layer = layer.params(self).into_iter().map(of_layer);
            for (param, shape) in of_layer {
                params.extend(self.norm_bias(param).map(|bias| (bias, shape.clone())));
                params.push((param, shape));
            }
        }
        params
    }

    /// Bias of a norm; `None` for a norm without one, and for other parameters.
    pub(crate) fn norm_bias(&self, param: Param) -> Option<Param> {
        let has_bias = |param: Param| match param {
            Param::Layer(layer, LayerParam::QueryNorm | LayerParam::KeyNorm) => {
                let attention = self.layers[layer].mixer.attention();
                attention.is_some_and(|attention| attention.qk_norm != QkNorm::EachHead)
            }
            _ => true,
        };
        param.norm_bias().filter(|_| self.norm_kind == NormKind::Layer(Bias::Present) && has_bias(param))
    }
}

impl DecoderSpec {
    /// Number of parameters of experts that a token is not routed to.
    pub(crate) fn inactive_parameters(&self) -> u64 {
        let experts = self.layers.iter().filter_map(|layer| layer.mlp.experts());
        experts.map(|experts| experts.inactive_parameters(self.hidden_size)).fold(0, u64::saturating_add)
    }

    /// Attention layers, in order.
    pub(crate) fn attention_shapes(&self) -> Vec<AttentionShape> {
        let shape = |layer: &LayerSpec| match &layer.mixer {
            Mixer::Attention(attention) => {
                let [query_width, _] = attention.widths();
                Some(AttentionShape { query_width, window: attention.window.slots() })
            }
            Mixer::LatentAttention(attention) => {
                let query_width = attention.num_heads * attention.cached_dim();
                Some(AttentionShape { query_width, window: None })
            }
            _ => None,
        };
        self.layers.iter().filter_map(shape).collect()
    }

    /// Number of experts whose rows a parameter holds.
    pub(crate) fn num_experts(&self, param: Param) -> Option<usize> {
        use LayerParam::{ExpertDowns, ExpertGates, ExpertUps};
        let Param::Layer(layer, ExpertDowns(_) | ExpertGates(_) | ExpertUps(_)) = param else { return None };
        self.layers[layer].mlp.experts().map(|experts| experts.num_experts)
    }

    /// Number of matrices that a parameter stacks: of experts, or of heads.
    pub(crate) fn num_matrices(&self, param: Param) -> Option<usize> {
        let Param::Layer(layer, LayerParam::LatentKeys | LayerParam::LatentValues) = param else {
            return self.num_experts(param);
        };
        match &self.layers[layer].mixer {
            Mixer::LatentAttention(attention) => Some(attention.num_heads),
            _ => None,
        }
    }

    /// Number of heads or groups whose rows a vector holds, which GGUF files have as a leading dimension.
    pub(crate) fn num_row_groups(&self, param: Param) -> Option<usize> {
        let Param::Layer(layer, param) = param else { return None };
        let net = match &self.layers[layer].mixer {
            Mixer::Mamba2(net) => net,
            Mixer::Attention(attention) if attention.qk_norm == QkNorm::EachHead => {
                return match param {
                    LayerParam::QueryNorm => Some(attention.num_heads),
                    LayerParam::KeyNorm => Some(attention.num_kv_heads),
                    _ => None,
                };
            }
            _ => return None,
        };
        match param {
            LayerParam::MambaALog | LayerParam::MambaSkip => Some(net.heads.num_heads),
            LayerParam::MambaNorm => Some(net.heads.num_groups),
            _ => None,
        }
    }

    /// Returns true if the columns of a parameter are value heads in the order of Hugging Face's files, which
    /// GGUF files change.
    pub(crate) fn has_grouped_columns(&self, param: Param) -> bool {
        let Param::Layer(layer, LayerParam::DeltaOutput(_)) = param else { return false };
        let Mixer::DeltaNet(net) = &self.layers[layer].mixer else { return false };
        matches!(net.heads.order, HeadOrder::Grouped)
    }

    /// Parameters that files may contain and this decoder does not read.
    pub(crate) fn unused_params(&self) -> Vec<Param> {
        let head = (self.output_head != OutputHead::Separate).then_some(Param::OutputHead);
        let of_layer = |(index, layer): (usize, &LayerSpec)| {
            let params = layer.unused_params(self).into_iter();
            params.map(move |param| Param::Layer(index, param)).collect::<Vec<_>>()
        };
        head.into_iter().chain(self.layers.iter().enumerate().flat_map(of_layer)).collect()
    }
}

impl LayerSpec {
    fn params(&self, spec: &DecoderSpec) -> Vec<NamedShape> {
        let hidden = spec.hidden_size;
        let mut params: Vec<_> = self.norm_params().into_iter().map(|param| (param, vec![hidden])).collect();
        params.extend(match &self.mixer {
            Mixer::Attention(attention) => attention.params(hidden),
            Mixer::LatentAttention(attention) => attention.params(hidden),
            Mixer::ShortConv(conv) => conv.params(hidden),
            Mixer::DeltaNet(net) => net.params(hidden),
            Mixer::Mamba2(net) => net.params(hidden),
            Mixer::Absent => Vec::new(),
        });
        params.extend(self.mlp.params(hidden));
        params.extend(spec.per_layer_inputs.iter().flat_map(|inputs| inputs.layer_params(hidden)));
        params.extend(spec.streams.iter().flat_map(|streams| streams.layer_params(hidden)));
        if self.scalar == LayerScalar::Present {
            params.push((LayerParam::Scalar, vec![1]));
        }
        params
    }

    /// Norms around the blocks that the layer has.
    fn norm_params(&self) -> Vec<LayerParam> {
        let blocks = self.blocks();
        let pairs = [self.norms.pre_norms(), self.norms.post_norms()].into_iter();
        let of_blocks = pairs.flat_map(|pair| pair.into_iter().zip(blocks));
        let mut params: Vec<_> = of_blocks.filter_map(|(norm, there)| norm.filter(|_| there)).collect();
        params.dedup(); // A norm that both blocks read.
        params
    }

    /// Presence of the mixer and of the feed-forward block.
    pub(crate) fn blocks(&self) -> [bool; 2] {
        [self.mixer != Mixer::Absent, self.mlp != Mlp::Absent]
    }

    fn unused_params(&self, spec: &DecoderSpec) -> Vec<LayerParam> {
        let attention = self.mixer.attention().into_iter();
        let mut params: Vec<_> =
            attention.flat_map(|attention| attention.unused_params(spec.hidden_size)).collect();
        if spec.streams.is_some_and(|streams| streams.correction_scale == CorrectionScale::Unused) {
            params.push(LayerParam::AltUpCorrectionScale);
        }
        params
    }
}

impl Mixer {
    /// Slots that the mixer attends to; all for one that does not attend.
    pub(crate) fn window(&self) -> Window {
        self.attention().map_or(Window::Full, |attention| attention.window)
    }

    /// The attention layer with keys and values of its own, if it is one.
    pub(crate) fn attention(&self) -> Option<&AttentionLayer> {
        match self {
            Self::Attention(attention) => Some(attention),
            _ => None,
        }
    }

    fn cache(&self, hidden_size: usize) -> LayerCache {
        match self {
            Self::Attention(attention) => attention.cache().into(),
            Self::LatentAttention(attention) => attention.cache().into(),
            Self::ShortConv(conv) => conv.cache(hidden_size),
            Self::DeltaNet(net) => net.cache(),
            Self::Mamba2(net) => net.cache(),
            Self::Absent => LayerCache::State { len: 0 },
        }
    }
}
