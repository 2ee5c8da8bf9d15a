use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{AttentionSpec, KvPool, RaggedLayout, RopeAngles};

use super::{Linear, RmsNorm};
use crate::Result;
use crate::spec::{DecoderSpec, QkNorm};
use crate::weights::{LayerParam, Param, WeightLoader};

/// Grouped-query attention with rotary positions over the paged cache.
///
/// # Source
/// GQA, arXiv 2305.13245; the query and key norms are Qwen3's.
pub(crate) struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    /// Norms of each query and key head.
    head_norms: Option<[RmsNorm; 2]>,
    spec: AttentionSpec,
    layer: usize,
}

/// What all layers of one forward pass share.
pub(crate) struct Pass {
    /// Which rows belong to which sequence, by group of the cache.
    pub(crate) layouts: Vec<Arc<RaggedLayout>>,
    /// How far each row's heads turn.
    pub(crate) angles: Arc<RopeAngles>,
}

impl Attention {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec, layer: usize) -> Result<Self> {
        let (hidden, head_dim, bias) = (spec.hidden_size, spec.head_dim, spec.attention_bias);
        let (queries, keys) = (spec.num_heads * head_dim, spec.num_kv_heads * head_dim);
        let mut head_norm =
            |param| RmsNorm::load(loader, Param::Layer(layer, param), head_dim, spec.norm_eps);
        let head_norms = match spec.qk_norm {
            QkNorm::Absent => None,
            QkNorm::PerHead => Some([head_norm(LayerParam::QueryNorm)?, head_norm(LayerParam::KeyNorm)?]),
        };
        Ok(Self {
            query: Linear::load(loader, layer, LayerParam::Query, [hidden, queries], bias)?,
            key: Linear::load(loader, layer, LayerParam::Key, [hidden, keys], bias)?,
            value: Linear::load(loader, layer, LayerParam::Value, [hidden, keys], bias)?,
            output: Linear::load(loader, layer, LayerParam::AttentionOutput, [queries, hidden], bias)?,
            head_norms,
            spec: AttentionSpec {
                num_heads: spec.num_heads,
                num_kv_heads: spec.num_kv_heads,
                head_dim,
                scale: (head_dim as f32).sqrt().recip(),
                window: spec.layers[layer].slots(),
                soft_cap: None,
            },
            layer,
        })
    }

    /// `x`, `[rows, hidden]`, plus what attention makes of it once it is normed; keys and values of the rows go to the cache.
    pub(crate) fn add_to(&self, x: Tensor<2>, norm: &RmsNorm, pass: &Pass, cache: &mut KvPool) -> Tensor<2> {
        let [rows, _] = x.dims();
        let AttentionSpec { num_heads, num_kv_heads, head_dim, .. } = self.spec;
        let projections = [&self.query, &self.key, &self.value];
        let products =
            lm_kernels::qkv(x.clone(), norm.weight(), norm.eps(), projections.map(|linear| linear.weight()));
        let [q, k, v] = products;
        let mut q = self.query.add_bias(q).reshape([rows, num_heads, head_dim]);
        let mut k = self.key.add_bias(k).reshape([rows, num_kv_heads, head_dim]);
        let v = self.value.add_bias(v).reshape([rows, num_kv_heads, head_dim]);
        if let Some([query_norm, key_norm]) = &self.head_norms {
            (q, k) = (query_norm.forward_heads(q), key_norm.forward_heads(k));
        }
        let (q, k) = (lm_kernels::rope(q, &pass.angles), lm_kernels::rope(k, &pass.angles));
        let layout = &pass.layouts[cache.layout().group_of(self.layer)];
        let attended = lm_kernels::attention(q, k, v, cache, self.layer, layout, &self.spec); // [rows, num_heads, head_dim]
        self.output.add_to(x, attended.reshape([rows, num_heads * head_dim]))
    }
}
