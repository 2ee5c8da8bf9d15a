use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, AttentionSpec, KvPool, RaggedLayout};

use super::{AdaptedRows, Linear, RmsNorm, Sublayer, Turn};
use crate::Result;
use crate::spec::{AttentionLayer, DecoderSpec, OutputGate};
use crate::weights::{LayerParam, Param, WeightLoader};

/// Grouped-query attention over the paged cache.
///
/// # Source
/// GQA, arXiv 2305.13245.
pub(crate) struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    /// Norms of queries and keys.
    norms: Option<[RmsNorm; 2]>,
    output_gate: OutputGate,
    /// Index in [`Pass::turns`].
    rope: Option<usize>,
    spec: AttentionSpec,
    layer: usize,
}

/// What all layers of one forward pass share.
pub(crate) struct Pass {
    /// Which rows belong to which sequence, by group of the cache.
    pub(crate) layouts: Vec<Arc<RaggedLayout>>,
    /// How the rows' heads turn, by rotation of the decoder.
    pub(crate) turns: Vec<Turn>,
    /// The rows with an adapter.
    pub(crate) adapted: Vec<AdaptedRows>,
}

impl Attention {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        attention: &AttentionLayer,
        layer: usize,
    ) -> Result<Self> {
        let (hidden, [queries, keys]) = (spec.hidden_size, attention.widths());
        let mut norm = |param, len| RmsNorm::load(loader, spec, Param::Layer(layer, param), len);
        let norms = match attention.norm_lengths() {
            None => None,
            Some([q, k]) => Some([norm(LayerParam::QueryNorm, q)?, norm(LayerParam::KeyNorm, k)?]),
        };
        let mut linear =
            |param, shape, bias| -> Result<Linear> { Linear::load(loader, layer, param, shape, bias) };
        Ok(Self {
            query: linear(LayerParam::Query, [hidden, attention.query_width()], attention.bias)?,
            key: linear(LayerParam::Key, [hidden, keys], attention.bias)?,
            value: linear(LayerParam::Value, [hidden, keys], attention.bias)?,
            output: linear(LayerParam::AttentionOutput, [queries, hidden], attention.output_bias)?,
            norms,
            output_gate: attention.output_gate,
            rope: attention.rope,
            spec: AttentionSpec {
                num_heads: attention.num_heads,
                num_kv_heads: attention.num_kv_heads,
                head_dim: attention.head_dim,
                scale: attention.scale,
                window: attention.window.slots(),
                soft_cap: attention.soft_cap,
                sinks: None,
            },
            layer,
        })
    }

    /// `x`, `[rows, hidden]`, plus what attention makes of it; keys and values of the rows go to the cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        around: &Sublayer,
        pass: &Pass,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let [rows, _] = x.dims();
        let AttentionSpec { num_heads, num_kv_heads, head_dim, .. } = self.spec;
        let [q, k, v] = around.input(x.clone()).qkv([&self.query, &self.key, &self.value], pass);
        let (mut q, gate) = match self.output_gate {
            OutputGate::Absent => (q.reshape([rows, num_heads, head_dim]), None),
            OutputGate::PerElement => {
                let pairs = q.reshape([rows, num_heads, 2 * head_dim]);
                let gate = pairs.clone().narrow(2, head_dim, head_dim);
                (pairs.narrow(2, 0, head_dim), Some(gate))
            }
        };
        let mut k = k.reshape([rows, num_kv_heads, head_dim]);
        let v = v.reshape([rows, num_kv_heads, head_dim]);
        if let Some([query_norm, key_norm]) = &self.norms {
            (q, k) = (query_norm.forward_parts(q), key_norm.forward_parts(k));
        }
        if let Some(rope) = self.rope {
            [q, k] = pass.turns[rope].apply(q, k);
        }
        let layout = &pass.layouts[cache.layout().group_of(self.layer)];
        let attended = lm_kernels::attention(q, k, v, cache, self.layer, layout, &self.spec); // [rows, num_heads, head_dim]
        let attended = attended.reshape([rows, num_heads * head_dim]);
        let attended = match gate {
            None => attended,
            Some(gate) => {
                lm_kernels::glu(gate.reshape([rows, num_heads * head_dim]), attended, Activation::Sigmoid)
            }
        };
        around.add_projected(x, attended, &self.output, pass)
    }
}
