use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, AttentionSpec, KvPool, RaggedLayout};

use super::{BlockInput, LayerLoader, Projection, ResidualBlock, Rotation};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::loader::AdaptedRows;
use crate::nn::{Norm, PartsNorm};
use crate::spec::{AttentionLayer, Direction, KvSource, OutputGate, QkNorm, Sinks};

/// Grouped-query attention (GQA), over the paged cache or, in an encoder, over the rows of the text.
///
/// # Source
/// GQA, arXiv 2305.13245.
pub(crate) struct Attention {
    query: Projection,
    query_norm: Option<PartsNorm>,
    qk_norm: QkNorm,
    /// `None` if another layer writes the rows' keys and values to the cache.
    key_values: Option<KeyValueProjections>,
    output: Projection,
    output_gate: OutputGate,
    /// Index in [`ForwardContext::rotations`].
    rope: Option<usize>,
    spec: AttentionSpec,
    direction: Direction,
    /// Slots on each side of the query that an encoder's row attends to; `None`: all.
    reach: Option<usize>,
    layer: usize,
}

/// Projections and norms of keys and values.
struct KeyValueProjections {
    key: Projection,
    key_norm: Option<PartsNorm>,
    /// `None`: values are the keys before norm and rotation.
    value: Option<Projection>,
    value_norm: Option<Norm>,
}

/// Data of a forward pass that all its layers share.
pub(crate) struct ForwardContext {
    /// Ragged layout of the rows, by cache group.
    pub(crate) layouts: Vec<Arc<RaggedLayout>>,
    /// Number of rows of each sequence.
    pub(crate) lengths: Vec<usize>,
    /// Rotations of the rows' heads, by index in [`DecoderSpec::ropes`](crate::spec::DecoderSpec::ropes).
    pub(crate) rotations: Vec<Rotation>,
    /// Row ranges that use an adapter.
    pub(crate) adapted: Vec<AdaptedRows>,
    /// Per-layer inputs of decoders that have them, concatenated by layer: `[rows, layers * size]`.
    pub(crate) per_layer_inputs: Option<Tensor<2>>,
}

impl Attention {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, attention: &AttentionLayer) -> Result<Self> {
        let (hidden, [queries, _]) = (layer.hidden(), attention.widths());
        let (bias, output_bias) = (attention.bias, attention.output_bias);
        let sinks = match attention.sinks {
            Sinks::Absent => None,
            Sinks::PerHead => Some(layer.values(LayerParam::Sinks, attention.num_heads)?.into()),
        };
        let query = [hidden, attention.query_width()];
        let query = Projection::load(layer, LayerParam::Query, query, bias)?;
        Ok(Self {
            query,
            query_norm: load_qk_norm(layer, attention, LayerParam::QueryNorm)?,
            qk_norm: attention.qk_norm,
            key_values: KeyValueProjections::load(layer, attention)?,
            output: Projection::load(layer, LayerParam::AttentionOutput, [queries, hidden], output_bias)?,
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
            direction: layer.spec.direction(),
            reach: attention.window.reach(),
            layer: layer.layer,
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
            Some(projections) => {
                let [q, k, v] = projections.project(input, &self.query, context);
                (q, Some(projections.heads([k, v], self, rotation)))
            }
        };
        let (q, gate) = self.queries(q, rotation);
        let attended = self.attend(q, new, context, cache); // [rows, num_heads, head_dim]
        let attended = attended.reshape([rows, self.spec.num_heads * self.spec.head_dim]);
        let attended = match gate {
            None => attended,
            Some(gate) => lm_kernels::glu(gate, attended, Activation::Sigmoid),
        };
        residual.add_projected(x, attended, &self.output, context)
    }

    /// Attention of the queries `[rows, num_heads, head_dim]` to the rows' new keys and values, and to the
    /// cached ones.
    fn attend(
        &self,
        q: Tensor<3>,
        new: Option<[Tensor<3>; 2]>,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<3> {
        let layout = |cache: &KvPool| &context.layouts[cache.layout().group_of(self.layer)];
        match (new, self.direction) {
            (Some([k, v]), Direction::Bidirectional) => {
                lm_kernels::segment_attention(q, k, v, &context.lengths, self.spec.scale, self.reach)
            }
            (Some([k, v]), Direction::Causal) => {
                let layout = layout(cache);
                lm_kernels::attention(q, k, v, cache, self.layer, layout, &self.spec)
            }
            (None, _) => {
                let layout = layout(cache);
                lm_kernels::attention_shared(q, cache, self.layer, layout, &self.spec)
            }
        }
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
        let rotate = |q| match rotation {
            None => q,
            Some(rotation) => rotation.queries(q),
        };
        (self.qk_norm.apply(self.query_norm.as_ref(), q, rotate), gate)
    }
}

impl QkNorm {
    /// Norms and rotates queries or keys, `[rows, heads, head_dim]`, in the order of the architecture.
    fn apply(
        self,
        norm: Option<&PartsNorm>,
        x: Tensor<3>,
        rotate: impl FnOnce(Tensor<3>) -> Tensor<3>,
    ) -> Tensor<3> {
        let normed = |x| match norm {
            None => x,
            Some(norm) => norm.forward(x),
        };
        match self {
            Self::Absent | Self::PerHead | Self::EachHead | Self::WholeRow => rotate(normed(x)),
            Self::PerHeadAfterRope => normed(rotate(x)),
        }
    }
}

/// Loads the norm of queries or of keys, if there is one.
fn load_qk_norm(
    layer: &mut LayerLoader<'_, '_>,
    attention: &AttentionLayer,
    param: LayerParam,
) -> Result<Option<PartsNorm>> {
    let AttentionLayer { num_heads, num_kv_heads, head_dim, .. } = *attention;
    let Some([queries, keys]) = attention.norm_lengths() else { return Ok(None) };
    let (heads, len) =
        if param == LayerParam::QueryNorm { (num_heads, queries) } else { (num_kv_heads, keys) };
    Ok(Some(match attention.qk_norm {
        QkNorm::EachHead => layer.norm_of_parts(param, heads, head_dim)?,
        _ => PartsNorm::whole(layer.norm(param, len)?),
    }))
}

impl KeyValueProjections {
    fn load(layer: &mut LayerLoader<'_, '_>, attention: &AttentionLayer) -> Result<Option<Self>> {
        let shape = [layer.hidden(), attention.widths()[1]];
        let mut load = |param| Projection::load(layer, param, shape, attention.bias);
        let (key, value) = match attention.kv_source {
            KvSource::SharedWith(_) => return Ok(None),
            KvSource::KeysAsValues => (load(LayerParam::Key)?, None),
            KvSource::Projected | KvSource::NormedValues => {
                (load(LayerParam::Key)?, Some(load(LayerParam::Value)?))
            }
        };
        let norms_values = attention.kv_source != KvSource::Projected;
        let value_norm = norms_values.then(|| layer.unweighted_norm(attention.head_dim).into());
        let key_norm = load_qk_norm(layer, attention, LayerParam::KeyNorm)?;
        Ok(Some(Self { key, key_norm, value, value_norm }))
    }

    /// Returns normed, rotated keys and normed values of the projections' outputs:
    /// `[rows, num_kv_heads, head_dim]` each.
    fn heads(&self, kv: [Tensor<2>; 2], of: &Attention, rotation: Option<&Rotation>) -> [Tensor<3>; 2] {
        let [k, v] = kv.map(|x| {
            let [rows, _] = x.dims();
            x.reshape([rows, of.spec.num_kv_heads, of.spec.head_dim])
        });
        let rotate = |k| match rotation {
            None => k,
            Some(rotation) => rotation.keys(k),
        };
        let k = of.qk_norm.apply(self.key_norm.as_ref(), k, rotate);
        [k, Norm::apply(self.value_norm.as_ref(), v)]
    }

    /// Projects the rows to queries, keys and values, before QK norm: `[rows, heads * head_dim]` each.
    fn project(&self, input: BlockInput<'_>, query: &Projection, context: &ForwardContext) -> [Tensor<2>; 3] {
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
