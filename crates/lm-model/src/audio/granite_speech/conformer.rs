//! Layer of Granite Speech's encoder: a conformer block.

use burn::tensor::Tensor;
use burn::tensor::activation::silu;
use lm_kernels::{Activation, Device, from_host};

use super::settings::Sizes;
use crate::encoders::blocks::{
    Bias, BlockAttention, DepthwiseConv, LayerNorm, Linear, Mlp, TensorReader, in_tiles, in_turn,
};
use crate::error::Result;

/// Epsilon of all norms.
const EPS: f32 = 1e-5;

/// Half a feed-forward block, attention, convolution, and the other half.
pub(super) struct Layer {
    first: FeedForward,
    attention: Attention,
    conv: Convolution,
    second: FeedForward,
    norm: LayerNorm,
}

impl Layer {
    /// Loads the module `name`.
    pub(super) fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        Ok(Self {
            first: FeedForward::load(tensors, &part("ff1"), sizes)?,
            attention: Attention::load(tensors, &part("attn"), sizes)?,
            conv: Convolution::load(tensors, &part("conv"), sizes)?,
            second: FeedForward::load(tensors, &part("ff2"), sizes)?,
            norm: LayerNorm::load(tensors, &part("post_norm"), sizes.hidden, EPS)?,
        })
    }

    /// `[rows, hidden]` to the same shape. Each part takes a turn: a long audio has some thousand rows.
    pub(super) fn forward(&self, x: Tensor<2>, device: Device) -> Tensor<2> {
        let x = in_turn(device, || self.first.add_to(x));
        let x = in_turn(device, || self.attention.add_to(x));
        let x = in_turn(device, || self.conv.add_to(x));
        in_turn(device, || self.norm.forward(self.second.add_to(x)))
    }
}

struct FeedForward {
    norm: LayerNorm,
    mlp: Mlp,
}

impl FeedForward {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let widths = [sizes.hidden, sizes.intermediate, sizes.hidden];
        let names = [&*part("up_proj"), &*part("down_proj")];
        let mlp = Mlp::load(tensors, names, widths, Bias::Present, Activation::Silu)?;
        Ok(Self { norm: LayerNorm::load(tensors, &part("pre_norm"), sizes.hidden, EPS)?, mlp })
    }

    fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        self.mlp.forward(self.norm.forward(x.clone())) * 0.5 + x
    }
}

/// Attention of rows to the rows of their block.
struct Attention {
    norm: LayerNorm,
    query: Linear,
    /// Keys, then values.
    key_value: Linear,
    output: Linear,
    /// `[1, positions, head_dim]`.
    positions: Tensor<3>,
    reach: BlockAttention,
    heads: [usize; 2],
}

impl Attention {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let Sizes { hidden, num_heads, head_dim, block, max_distance, .. } = *sizes;
        let inner = num_heads * head_dim;
        let distances = isize::MIN..=isize::MAX;
        let reach = BlockAttention { block, before: 0, after: 0, distances, soft_cap: None };
        let stored = tensors.array(&part("rel_pos_emb.weight"), &[2 * max_distance + 1, head_dim])?;
        // Row `max_distance + d` is for the distance d.
        let row = |index: usize| &stored[(max_distance + block - 1 - index) * head_dim..][..head_dim];
        let table: Vec<f32> = (0..reach.positions()).flat_map(row).copied().collect();
        let positions = from_host(table, [1, reach.positions(), head_dim], tensors.burn_device());
        Ok(Self {
            norm: LayerNorm::load(tensors, &part("pre_norm"), hidden, EPS)?,
            query: Linear::load(tensors, &part("to_q"), [hidden, inner], Bias::Absent)?,
            key_value: Linear::load(tensors, &part("to_kv"), [hidden, 2 * inner], Bias::Absent)?,
            output: Linear::load(tensors, &part("to_out"), [inner, hidden], Bias::Present)?,
            positions,
            reach,
            heads: [num_heads, head_dim],
        })
    }

    fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        let ([rows, _], [heads, head_dim]) = (x.dims(), self.heads);
        let inner = heads * head_dim;
        let normed = self.norm.forward(x.clone());
        let scale = (head_dim as f32).sqrt().recip();
        let query = self.query.forward(normed.clone()).reshape([rows, heads, head_dim]) * scale;
        let both = self.key_value.forward(normed);
        let half =
            |index: usize| both.clone().narrow(1, index * inner, inner).reshape([rows, heads, head_dim]);
        let attended = self.reach.forward(query, half(0), half(1), self.positions.clone());
        self.output.add_to(x, attended.reshape([rows, inner]))
    }
}

/// Convolution over rows between two projections, the first of them gated.
struct Convolution {
    norm: LayerNorm,
    up: Linear,
    conv: DepthwiseConv,
    /// Factor and addend of the batch norm.
    batch_norm: [Tensor<1>; 2],
    down: Linear,
    width: usize,
}

impl Convolution {
    fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let Sizes { hidden, conv: width, kernel, .. } = *sizes;
        Ok(Self {
            norm: LayerNorm::load(tensors, &part("norm"), hidden, EPS)?,
            up: Linear::load(tensors, &part("up_conv"), [hidden, 2 * width], Bias::Present)?,
            conv: DepthwiseConv::load(tensors, &part("depth_conv.conv"), [width, kernel], kernel / 2)?,
            batch_norm: batch_norm(tensors, &part("batch_norm"), width)?,
            down: Linear::load(tensors, &part("down_conv"), [width, hidden], Bias::Present)?,
            width,
        })
    }

    fn add_to(&self, x: Tensor<2>) -> Tensor<2> {
        let gated = in_tiles(self.norm.forward(x.clone()), |x| {
            let both = self.up.forward(x);
            let (value, gate) =
                (both.clone().narrow(1, 0, self.width), both.narrow(1, self.width, self.width));
            lm_kernels::glu(gate, value, Activation::Sigmoid)
        });
        let [factor, addend] = self.batch_norm.clone().map(Tensor::unsqueeze);
        self.down.add_to(x, silu(self.conv.forward(gated) * factor + addend))
    }
}

/// The batch norm `name` as factor and addend, with the statistics of the training.
fn batch_norm(tensors: &mut TensorReader<'_>, name: &str, width: usize) -> Result<[Tensor<1>; 2]> {
    let mut values = |part: &str| tensors.values(&format!("{name}.{part}"), width);
    let (weight, bias, mean, variance) =
        (values("weight")?, values("bias")?, values("running_mean")?, values("running_var")?);
    tensors.skip(&format!("{name}.num_batches_tracked"));
    let factor: Vec<f32> =
        weight.iter().zip(&variance).map(|(weight, variance)| weight / (variance + EPS).sqrt()).collect();
    let addend =
        bias.iter().zip(&mean).zip(&factor).map(|((bias, mean), factor)| bias - mean * factor).collect();
    Ok([factor, addend].map(|values| from_host(values, [width], tensors.burn_device())))
}
