use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, AttentionSpec, KvPool, RaggedLayout};

use super::{BlockInput, Linear, ResidualBlock, RmsNorm, Rotation};
use crate::checkpoint::{LayerParam, Param};
use crate::error::Result;
use crate::loader::{AdaptedRows, WeightLoader};
use crate::spec::{AttentionLayer, DecoderSpec, KvSource, OutputGate, Sinks};

/// Grouped-query attention (GQA) over the paged cache.
///
/// # Source
/// GQA, arXiv 2305.13245.
pub(crate) struct Attention {
    query: Linear,
    query_norm: Option<RmsNorm>,
    /// `None` if another layer writes the rows' keys and values to the cache.
    key_values: Option<KeyValueLinears>,
    output: Linear,
    output_gate: OutputGate,
    /// Index in [`ForwardContext::rotations`].
    rope: Option<usize>,
    spec: AttentionSpec,
    layer: usize,
}

/// Projections and norms of keys and values.
struct KeyValueLinears {
    key: Linear,
    key_norm: Option<RmsNorm>,
    /// `None`: values are the keys before norm and rotation.
    value: Option<Linear>,
    value_norm: Option<RmsNorm>,
}

/// Data of a forward pass that all its layers share.
pub(crate) struct ForwardContext {
    /// Ragged layout of the rows, by cache group.
    pub(crate) layouts: Vec<Arc<RaggedLayout>>,
    /// Rotations of the rows' heads, by index in [`DecoderSpec::ropes`].
    pub(crate) rotations: Vec<Rotation>,
    /// Row ranges that use an adapter.
    pub(crate) adapted: Vec<AdaptedRows>,
    /// Per-layer inputs of decoders that have them, concatenated by layer: `[rows, layers * size]`.
    pub(crate) per_layer_inputs: Option<Tensor<2>>,
}

impl Attention {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        attention: &AttentionLayer,
        layer: usize,
    ) -> Result<Self> {
        let (hidden, [queries, _]) = (spec.hidden_size, attention.widths());
        let (bias, output_bias) = (attention.bias, attention.output_bias);
        let sinks = match attention.sinks {
            Sinks::Absent => None,
            Sinks::PerHead => {
                Some(loader.values(Param::Layer(layer, LayerParam::Sinks), attention.num_heads)?.into())
            }
        };
        Ok(Self {
            query: Linear::load(loader, layer, LayerParam::Query, [hidden, attention.query_width()], bias)?,
            query_norm: match attention.norm_lengths() {
                None => None,
                Some([len, _]) => {
                    Some(RmsNorm::load(loader, spec, Param::Layer(layer, LayerParam::QueryNorm), len)?)
                }
            },
            key_values: KeyValueLinears::load(loader, spec, attention, layer)?,
            output: Linear::load(loader, layer, LayerParam::AttentionOutput, [queries, hidden], output_bias)?,
            output_gate: attention.output_gate,
            rope: attention.rope,
            spec: AttentionSpec {
                num_heads: attention.num_heads,
                num_kv_heads: attention.num_kv_heads,
                head_dim: attention.head_dim,
                scale: attention.scale,
                window: attention.window.slots(),
                soft_cap: attention.soft_cap,
                sinks,
            },
            layer,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the attention output; writes the rows' keys and values to the
    /// cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let [rows, _] = x.dims();
        let input = residual.input(x.clone());
        let rotation = self.rope.map(|rope| &context.rotations[rope]);
        let (q, new) = match &self.key_values {
            None => (self.query.forward(input.normed(), context), None),
            Some(linears) => {
                let [q, k, v] = linears.project(input, &self.query, context);
                (q, Some(linears.heads([k, v], &self.spec, rotation)))
            }
        };
        let (q, gate) = self.queries(q, rotation);
        let layout = &context.layouts[cache.layout().group_of(self.layer)];
        let attended = match new {
            None => lm_kernels::attention_shared(q, cache, self.layer, layout, &self.spec),
            Some([k, v]) => lm_kernels::attention(q, k, v, cache, self.layer, layout, &self.spec),
        }; // [rows, num_heads, head_dim]
        let attended = attended.reshape([rows, self.spec.num_heads * self.spec.head_dim]);
        let attended = match gate {
            None => attended,
            Some(gate) => lm_kernels::glu(gate, attended, Activation::Sigmoid),
        };
        residual.add_projected(x, attended, &self.output, context)
    }

    /// Returns normed and rotated queries, `[rows, num_heads, head_dim]`, of a projection's `[rows, width]`;
    /// and the output gate where the projection contains one, `[rows, num_heads * head_dim]`.
    fn queries(&self, q: Tensor<2>, rotation: Option<&Rotation>) -> (Tensor<3>, Option<Tensor<2>>) {
        let [rows, _] = q.dims();
        let AttentionSpec { num_heads, head_dim, .. } = self.spec;
        let (q, gate) = match self.output_gate {
            OutputGate::Absent => (q.reshape([rows, num_heads, head_dim]), None),
            OutputGate::PerElement => {
                let pairs = q.reshape([rows, num_heads, 2 * head_dim]);
                let gate = pairs.clone().narrow(2, head_dim, head_dim);
                (pairs.narrow(2, 0, head_dim), Some(gate.reshape([rows, num_heads * head_dim])))
            }
        };
        let q = RmsNorm::apply(self.query_norm.as_ref(), q);
        match rotation {
            None => (q, gate),
            Some(rotation) => (rotation.queries(q), gate),
        }
    }
}

impl KeyValueLinears {
    fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        attention: &AttentionLayer,
        layer: usize,
    ) -> Result<Option<Self>> {
        let (hidden, [_, width]) = (spec.hidden_size, attention.widths());
        let device = loader.burn_device().clone();
        let unweighted = || Some(RmsNorm::unweighted(&device, spec, attention.head_dim));
        let mut linear = |param| Linear::load(loader, layer, param, [hidden, width], attention.bias);
        let (key, value, value_norm) = match attention.kv_source {
            KvSource::SharedWith(_) => return Ok(None),
            KvSource::Projected => (linear(LayerParam::Key)?, Some(linear(LayerParam::Value)?), None),
            KvSource::NormedValues => {
                (linear(LayerParam::Key)?, Some(linear(LayerParam::Value)?), unweighted())
            }
            KvSource::KeysAsValues => (linear(LayerParam::Key)?, None, unweighted()),
        };
        let key_norm = match attention.norm_lengths() {
            None => None,
            Some([_, len]) => {
                Some(RmsNorm::load(loader, spec, Param::Layer(layer, LayerParam::KeyNorm), len)?)
            }
        };
        Ok(Some(Self { key, key_norm, value, value_norm }))
    }

    /// Returns normed, rotated keys and normed values of the projections' outputs:
    /// `[rows, num_kv_heads, head_dim]` each.
    fn heads(&self, kv: [Tensor<2>; 2], spec: &AttentionSpec, rotation: Option<&Rotation>) -> [Tensor<3>; 2] {
        let [k, v] = kv.map(|x| {
            let [rows, _] = x.dims();
            x.reshape([rows, spec.num_kv_heads, spec.head_dim])
        });
        let k = RmsNorm::apply(self.key_norm.as_ref(), k);
        let v = RmsNorm::apply(self.value_norm.as_ref(), v);
        match rotation {
            None => [k, v],
            Some(rotation) => [rotation.keys(k), v],
        }
    }

    /// Projects the rows to queries, keys and values, before QK norm: `[rows, heads * head_dim]` each.
    fn project(&self, input: BlockInput<'_>, query: &Linear, context: &ForwardContext) -> [Tensor<2>; 3] {
        match &self.value {
            Some(value) => input.qkv([query, &self.key, value], context),
            None => {
                let x = input.normed();
                let k = self.key.forward(x.clone(), context);
                [query.forward(x, context), k.clone(), k]
            }
        }
    }
}
