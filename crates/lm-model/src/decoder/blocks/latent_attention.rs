use burn::tensor::Tensor;
use lm_kernels::{AttentionSpec, KvPool, Weight, batched_linear};

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::{Error, Result};
use crate::nn::RmsNorm;
use crate::spec::{Bias, LatentAttentionLayer};

/// Multi-head latent attention (MLA) in its absorbed form: queries are projected to the space of the cached
/// latent vectors, and one KV head serves all query heads.
///
/// # Source
/// DeepSeek-V2, arXiv 2405.04434, section 2.1 and appendix C.
pub(crate) struct LatentAttention {
    query_down: Option<(Projection, RmsNorm)>,
    query: Projection,
    latent_down: Projection,
    latent_norm: RmsNorm,
    /// Transposed key projections of the heads: `[num_heads * latent_dim, nope_dim]`.
    keys: Weight,
    /// Value projections of the heads: `[num_heads * value_dim, latent_dim]`.
    values: Weight,
    output: Projection,
    spec: LatentAttentionLayer,
    layer: usize,
}

impl LatentAttention {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, spec: &LatentAttentionLayer) -> Result<Self> {
        let (hidden, heads, latent) = (layer.hidden(), spec.num_heads, spec.latent_dim);
        let norm = |layer: &mut LayerLoader<'_, '_>, param, len| {
            Ok::<_, Error>(RmsNorm { eps: spec.norm_eps, ..layer.norm_as_stored(param, len)? })
        };
        let query_down = spec.query_rank.map(|rank| {
            let down = Projection::load(layer, LayerParam::LatentQueryDown, [hidden, rank], spec.bias)?;
            Ok::<_, Error>((down, norm(layer, LayerParam::LatentQueryNorm, rank)?))
        });
        let query = [spec.query_rank.unwrap_or(hidden), spec.query_width()];
        Ok(Self {
            query_down: query_down.transpose()?,
            query: Projection::load(layer, LayerParam::LatentQuery, query, Bias::Absent)?,
            latent_down: Projection::load(
                layer,
                LayerParam::LatentDown,
                [hidden, spec.cached_dim()],
                spec.bias,
            )?,
            latent_norm: norm(layer, LayerParam::LatentNorm, latent)?,
            keys: layer.matrix(LayerParam::LatentKeys, heads * latent, spec.nope_dim)?,
            values: layer.matrix(LayerParam::LatentValues, heads * spec.value_dim, latent)?,
            output: Projection::load(
                layer,
                LayerParam::AttentionOutput,
                [heads * spec.value_dim, hidden],
                spec.bias,
            )?,
            spec: spec.clone(),
            layer: layer.layer,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the attention output; writes the rows' latent vectors to the
    /// cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let LatentAttentionLayer { num_heads, rope_dim, latent_dim, value_dim, .. } = self.spec;
        let [rows, _] = x.dims();
        let input = residual.input(x.clone()).normed();
        let rotation = &context.rotations[self.spec.rope];
        let q = rotation.queries(self.queries(input.clone(), context));
        let k = rotation.keys(self.latents(input, context));
        let layout = &context.layouts[cache.layout().group_of(self.layer)];
        let attention = AttentionSpec {
            num_heads,
            num_kv_heads: 1,
            head_dim: self.spec.cached_dim(),
            scale: self.spec.scale,
            window: None,
            soft_cap: None,
            sinks: None,
        };
        let read = lm_kernels::attention(q, k.clone(), k, cache, self.layer, layout, &attention);
        let read = read.narrow(2, rope_dim, latent_dim).swap_dims(0, 1); // [num_heads, rows, latent_dim]
        let values = batched_linear(read, &self.values).swap_dims(0, 1);
        residual.add_projected(x, values.reshape([rows, num_heads * value_dim]), &self.output, context)
    }

    /// Queries against the cached vectors, before RoPE: `[rows, num_heads, cached_dim]`.
    fn queries(&self, input: Tensor<2>, context: &ForwardContext) -> Tensor<3> {
        let LatentAttentionLayer { num_heads, rope_dim, nope_dim, .. } = self.spec;
        let [rows, _] = input.dims();
        let input = match &self.query_down {
            None => input,
            Some((down, norm)) => norm.forward(down.forward(input, context)),
        };
        let q = self.query.forward(input, context).reshape([rows, num_heads, rope_dim + nope_dim]);
        let rotated = q.clone().narrow(2, 0, rope_dim);
        let absorbed = batched_linear(q.narrow(2, rope_dim, nope_dim).swap_dims(0, 1), &self.keys);
        Tensor::cat(vec![rotated, absorbed.swap_dims(0, 1)], 2)
    }

    /// Vectors to cache, before RoPE: `[rows, 1, cached_dim]`.
    fn latents(&self, input: Tensor<2>, context: &ForwardContext) -> Tensor<3> {
        let [rows, _] = input.dims();
        let down = self.latent_down.forward(input, context); // [rows, cached_dim]
        let rotated = down.clone().narrow(1, 0, self.spec.rope_dim);
        let latent = down.narrow(1, self.spec.rope_dim, self.spec.latent_dim);
        let cached = Tensor::cat(vec![rotated, self.latent_norm.forward(latent)], 1);
        cached.reshape([rows, 1, self.spec.cached_dim()])
    }
}
