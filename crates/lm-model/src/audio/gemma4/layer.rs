//! Layer of Gemma 4's audio encoder: a conformer block with norms around each part.

use std::f32::consts::LN_2;

use burn::tensor::Tensor;
use lm_kernels::{Activation, from_host};

use super::settings::Sizes;
use crate::encoders::blocks::{
    Bias, BlockAttention, ClippedLinear, DepthwiseConv, Linear, RmsNorm, TensorReader, activated, with_zeros,
};
use crate::error::Result;

/// Epsilon of the norms that do not read `rms_norm_eps`.
const EPS: f32 = 1e-6;

/// Two feed-forward blocks around attention and convolution.
pub(super) struct Layer {
    first: FeedForward,
    attention_norms: [RmsNorm; 2],
    attention: Attention,
    conv: LightConv,
    second: FeedForward,
    norm: RmsNorm,
    clip: f32,
}

impl Layer {
    /// Loads the module `name`.
    pub(super) fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let mut norm = |name: &str| RmsNorm::load(tensors, &part(name), sizes.hidden, EPS);
        let attention_norms = [norm("norm_pre_attn")?, norm("norm_post_attn")?];
        Ok(Self {
            norm: norm("norm_out")?,
            attention_norms,
            first: FeedForward::load(tensors, &part("feed_forward1"), sizes)?,
            attention: Attention::load(tensors, &part("self_attn"), sizes)?,
            conv: LightConv::load(tensors, &part("lconv1d"), sizes)?,
            second: FeedForward::load(tensors, &part("feed_forward2"), sizes)?,
            clip: sizes.clip,
        })
    }

    /// `[rows, hidden]` to the same shape.
    pub(super) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.first.add_to(x);
        let [before, after] = &self.attention_norms;
        let attended = self.attention.forward(before.forward(clipped(x.clone(), self.clip)));
        let x = x + after.forward(clipped(attended, self.clip));
        let x = self.second.add_to(self.conv.add_to(x));
        self.norm.forward(clipped(x, self.clip))
    }
}

fn clipped(x: Tensor<2>, most: f32) -> Tensor<2> {
    x.clamp(-most, most)
}

struct FeedForward {
    norms: [RmsNorm; 2],
    up: ClippedLinear,
    down: ClippedLinear,
    activation: Activation,
    clip: f32,
    /// Factor on the output.
    weight: f32,
}

impl FeedForward {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let (part, hidden) = (|part: &str| format!("{name}.{part}"), sizes.hidden);
        let mut norm = |name: &str| RmsNorm::load(tensors, &part(name), hidden, EPS);
        let norms = [norm("pre_layer_norm")?, norm("post_layer_norm")?];
        let mut linear =
            |name: &str, widths| ClippedLinear::load(tensors, &part(name), widths, sizes.clipped);
        let (up, down) =
            (linear("ffw_layer_1", [hidden, 4 * hidden])?, linear("ffw_layer_2", [4 * hidden, hidden])?);
        let Sizes { activation, clip, residual_weight: weight, .. } = *sizes;
        Ok(Self { norms, up, down, activation, clip, weight })
    }

    fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        let [before, after] = &self.norms;
        let wide = self.up.forward(before.forward(clipped(x.clone(), self.clip)));
        let y = self.down.forward(activated(wide, self.activation));
        x + after.forward(clipped(y, self.clip)) * self.weight
    }
}

struct Attention {
    query: ClippedLinear,
    key: ClippedLinear,
    value: ClippedLinear,
    output: ClippedLinear,
    positions: Linear,
    /// Factors on the numbers of a query.
    query_scale: Tensor<1>,
    /// Sines and cosines of the distances that have a position.
    distances: Tensor<2>,
    reach: BlockAttention,
    num_heads: usize,
}

impl Attention {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let (part, hidden) = (|part: &str| format!("{name}.{part}"), sizes.hidden);
        let head_dim = hidden / sizes.num_heads;
        let scale = tensors.values(&part("per_dim_scale"), head_dim)?;
        let softplus = |x: &f32| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let factor = (head_dim as f32).sqrt().recip() / LN_2;
        let scale: Vec<f32> = scale.iter().map(|scale| factor * softplus(scale)).collect();
        let query_scale = from_host(scale, [head_dim], tensors.burn_device());
        let reach = BlockAttention {
            block: sizes.chunk,
            before: sizes.left - 1,
            after: sizes.right,
            distances: 1 - sizes.right.max(1) as isize..=sizes.left as isize - 2,
            soft_cap: Some(sizes.score_cap),
        };
        let farthest = (reach.positions() - reach.block) / 2;
        let table = sinusoids(farthest, hidden);
        let distances = from_host(table, [farthest + 1, hidden], tensors.burn_device());
        let mut linear =
            |name: &str| ClippedLinear::load(tensors, &part(name), [hidden, hidden], sizes.clipped);
        Ok(Self {
            query: linear("q_proj")?,
            key: linear("k_proj")?,
            value: linear("v_proj")?,
            output: linear("post")?,
            positions: Linear::load(tensors, &part("relative_k_proj"), [hidden, hidden], Bias::Absent)?,
            query_scale,
            distances,
            reach,
            num_heads: sizes.num_heads,
        })
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, hidden] = x.dims();
        let heads = |linear: &ClippedLinear| {
            linear.forward(x.clone()).reshape([rows, self.num_heads, hidden / self.num_heads])
        };
        let query = heads(&self.query) * self.query_scale.clone().unsqueeze();
        let key_scale = std::f32::consts::E.ln_1p() / LN_2;
        let (key, value) = (heads(&self.key) * key_scale, heads(&self.value));
        let attended = self.reach.forward(query, key, value, self.position_table());
        self.output.forward(attended.reshape([rows, hidden]))
    }

    /// `[heads, positions, head_dim]`: the farthest distance of the encoding is that of the first key in
    /// reach of a block's first row. Distances without an encoding have zeros.
    fn position_table(&self) -> Tensor<3> {
        let encoded = self.positions.forward(self.distances.clone());
        let ([count, hidden], all, first) = (encoded.dims(), self.reach.positions(), self.reach.block - 1);
        let table = with_zeros(encoded, [first, all - first - count]);
        table.reshape([all, self.num_heads, hidden / self.num_heads]).swap_dims(0, 1)
    }
}

/// Sines, then cosines, of the distances from `farthest` to 0 at falling frequencies:
/// `[farthest + 1, hidden]`.
fn sinusoids(farthest: usize, hidden: usize) -> Vec<f32> {
    let count = hidden / 2;
    let step = 10_000_f32.ln() / (count.max(2) - 1) as f32;
    let angle = |distance: usize, index: usize| distance as f32 * (-(index as f32) * step).exp();
    let row = |distance: usize| {
        let sines = (0..count).map(move |index| angle(distance, index).sin());
        sines.chain((0..count).map(move |index| angle(distance, index).cos()))
    };
    (0..=farthest).rev().flat_map(row).collect()
}

/// Convolution over earlier rows between two projections, the first of them gated.
struct LightConv {
    norm: RmsNorm,
    start: ClippedLinear,
    conv: DepthwiseConv,
    conv_norm: RmsNorm,
    end: ClippedLinear,
    activation: Activation,
    clip: f32,
}

impl LightConv {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let Sizes { hidden, kernel, eps, clipped, .. } = *sizes;
        let conv = DepthwiseConv::load(tensors, &part("depthwise_conv1d"), [hidden, kernel], kernel - 1)?;
        Ok(Self {
            norm: RmsNorm::load(tensors, &part("pre_layer_norm"), hidden, eps)?,
            start: ClippedLinear::load(tensors, &part("linear_start"), [hidden, 2 * hidden], clipped)?,
            conv,
            conv_norm: RmsNorm::load(tensors, &part("conv_norm"), hidden, eps)?,
            end: ClippedLinear::load(tensors, &part("linear_end"), [hidden, hidden], clipped)?,
            activation: sizes.activation,
            clip: sizes.clip,
        })
    }

    fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        let [_, hidden] = x.dims();
        let both = self.start.forward(self.norm.forward(x.clone()));
        let (value, gate) = (both.clone().narrow(1, 0, hidden), both.narrow(1, hidden, hidden));
        let y = self.conv.forward(lm_kernels::glu(gate, value, Activation::Sigmoid));
        let y = self.conv_norm.forward(clipped(y, self.clip));
        x + self.end.forward(activated(y, self.activation))
    }
}
