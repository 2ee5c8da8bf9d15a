use lm_formats::Result;
use lm_kernels::KvGeometry;

use super::{Bias, linear_params};
use crate::checkpoint::LayerParam;
use crate::config::{ModelConfig, invalid};

/// Grouped-query attention (GQA) layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttentionLayer {
    pub(crate) num_heads: usize,
    pub(crate) num_kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Factor on the scores before the softmax.
    pub(crate) scale: f32,
    pub(crate) window: Window,
    /// Soft cap `c`: scores become `c · tanh(scores / c)`.
    pub(crate) soft_cap: Option<f32>,
    pub(crate) sinks: Sinks,
    /// Index in [`super::DecoderSpec::ropes`]; `None`: no RoPE.
    pub(crate) rope: Option<usize>,
    pub(crate) qk_norm: QkNorm,
    pub(crate) kv_source: KvSource,
    /// Bias of the query, key and value projections.
    pub(crate) bias: Bias,
    /// Bias of the output projection.
    pub(crate) output_bias: Bias,
    pub(crate) output_gate: OutputGate,
}

/// Gate on the attention output, before the output projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputGate {
    Absent,
    /// Sigmoid of one gate per query element; in their shared projection, each head's gates follow its
    /// queries.
    PerElement,
}

/// Attention sinks: learned logits in the softmax denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sinks {
    Absent,
    /// A logit per query head, which takes its share of the softmax and adds no value.
    PerHead,
}

/// Norm of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    Absent,
    /// Norm over each head before RoPE, with one weight of `head_dim` shared by all heads.
    PerHead,
    /// The same, after RoPE.
    PerHeadAfterRope,
    /// Norm over each head before RoPE, with weights of its own for each head and no bias.
    EachHead,
    /// Norm over all heads together before RoPE, with a weight for each of their elements.
    WholeRow,
}

/// Source of a layer's keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KvSource {
    /// Projections of the rows.
    Projected,
    /// The same, with an unweighted norm over each value head.
    NormedValues,
    /// Key projection only; the values are the keys before norm and RoPE, with an unweighted norm.
    KeysAsValues,
    /// Keys and values that the earlier layer of this index has written to the cache.
    SharedWith(usize),
}

/// Slots that a layer attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// All slots up to the query.
    Full,
    /// This many slots, the query included.
    Sliding(usize),
    /// At most this many slots before and after the query; in encoders only.
    Symmetric(usize),
}

impl Window {
    pub(crate) fn slots(self) -> Option<usize> {
        match self {
            Self::Full => None,
            Self::Sliding(slots) => Some(slots),
            Self::Symmetric(reach) => Some(reach.saturating_mul(2).saturating_add(1)),
        }
    }

    /// Slots on each side of the query, in an encoder.
    pub(crate) fn reach(self) -> Option<usize> {
        match self {
            Self::Symmetric(reach) => Some(reach),
            Self::Full | Self::Sliding(_) => None,
        }
    }
}

impl AttentionLayer {
    /// Reads a config like Llama's.
    pub(super) fn llama(config: &ModelConfig) -> Result<Self> {
        let head_dim = config.head_dim()?;
        if !head_dim.is_multiple_of(2) {
            return Err(invalid("head_dim", head_dim, "an even number, whose halves RoPE rotates"));
        }
        Ok(Self {
            num_heads: config.num_attention_heads,
            num_kv_heads: config.num_kv_heads(),
            head_dim,
            scale: (head_dim as f32).sqrt().recip(),
            window: Window::Full,
            soft_cap: None,
            sinks: Sinks::Absent,
            rope: Some(0),
            qk_norm: QkNorm::Absent,
            kv_source: KvSource::Projected,
            bias: config.attention_bias.into(),
            output_bias: config.attention_bias.into(),
            output_gate: OutputGate::Absent,
        })
    }

    /// Widths of all query heads and of all key heads; the latter is also that of all value heads.
    pub(crate) fn widths(&self) -> [usize; 2] {
        [self.num_heads, self.num_kv_heads].map(|heads| heads * self.head_dim)
    }

    /// Width of the query projection, gates included.
    pub(crate) fn query_width(&self) -> usize {
        let [queries, _] = self.widths();
        match self.output_gate {
            OutputGate::Absent => queries,
            OutputGate::PerElement => 2 * queries,
        }
    }

    /// Weight lengths of the query and key norms.
    pub(crate) fn norm_lengths(&self) -> Option<[usize; 2]> {
        match self.qk_norm {
            QkNorm::Absent => None,
            QkNorm::PerHead | QkNorm::PerHeadAfterRope => Some([self.head_dim; 2]),
            QkNorm::EachHead | QkNorm::WholeRow => Some(self.widths()),
        }
    }

    pub(super) fn cache(&self) -> KvGeometry {
        KvGeometry {
            num_kv_heads: self.num_kv_heads,
            head_dim: self.head_dim,
            window: self.window.slots(),
            shared_with: match self.kv_source {
                KvSource::SharedWith(layer) => Some(layer),
                _ => None,
            },
        }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let [queries, _] = self.widths();
        let mut params = linear_params(LayerParam::Query, [hidden, self.query_width()], self.bias);
        if self.sinks == Sinks::PerHead {
            params.push((LayerParam::Sinks, vec![self.num_heads]));
        }
        params.extend(linear_params(LayerParam::AttentionOutput, [queries, hidden], self.output_bias));
        params.extend(self.norm_lengths().map(|[query, _]| (LayerParam::QueryNorm, vec![query])));
        let [keys, values] = self.key_value_params(hidden);
        match self.kv_source {
            KvSource::Projected | KvSource::NormedValues => params.extend(keys.into_iter().chain(values)),
            KvSource::KeysAsValues => params.extend(keys),
            KvSource::SharedWith(_) => {}
        }
        params
    }

    /// Parameters that files may contain for a layer that reads another layer's keys and values.
    pub(super) fn unused_params(&self, hidden: usize) -> Vec<LayerParam> {
        let unused = match self.kv_source {
            KvSource::SharedWith(_) => self.key_value_params(hidden).concat(),
            _ => Vec::new(),
        };
        unused.into_iter().map(|(param, _)| param).collect()
    }

    /// Parameters of keys and of values.
    fn key_value_params(&self, hidden: usize) -> [Vec<(LayerParam, Vec<usize>)>; 2] {
        let [_, width] = self.widths();
        let mut keys = linear_params(LayerParam::Key, [hidden, width], self.bias);
        keys.extend(self.norm_lengths().map(|[_, key]| (LayerParam::KeyNorm, vec![key])));
        [keys, linear_params(LayerParam::Value, [hidden, width], self.bias)]
    }
}
