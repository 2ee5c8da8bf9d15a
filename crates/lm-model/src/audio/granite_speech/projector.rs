//! Q-Former of Granite Speech: learned queries attend to each other and to the rows of a window.
//! Source: BLIP-2 (arXiv 2301.12597).

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use lm_kernels::{Device, from_host};

use super::settings::{ProjectorSizes, Sizes};
use crate::encoders::blocks::{Bias, LayerNorm, Linear, Mlp, TensorReader, in_turn, with_zeros};
use crate::error::Result;

/// Windows of rows to rows of the decoder.
pub(super) struct Projector {
    /// Normed queries, `[queries, hidden]`.
    queries: Tensor<2>,
    layers: Vec<Layer>,
    output: Linear,
    window: usize,
}

impl Projector {
    /// Loads the projector, to rows of `text_width`.
    pub(super) fn load(tensors: &mut TensorReader<'_>, sizes: &Sizes, text_width: usize) -> Result<Self> {
        let prefix = tensors.prefix(&["projector.", "model.projector."], "query")?;
        let name = |part: &str| format!("{prefix}{part}");
        let ProjectorSizes { hidden, num_layers, eps, .. } = sizes.projector;
        let count = sizes.window / sizes.downsample;
        let queries = tensors.array(&name("query"), &[1, count, hidden])?;
        let queries = from_host(queries, [count, hidden], tensors.burn_device());
        let norm = LayerNorm::load(tensors, &name("qformer.layernorm"), hidden, eps)?;
        let layer =
            |index| Layer::load(tensors, &name(&format!("qformer.encoder.layer.{index}")), index, sizes);
        let layers = (0..num_layers).map(layer).collect::<Result<_>>()?;
        let output = Linear::load(tensors, &name("linear"), [hidden, text_width], Bias::Present)?;
        Ok(Self { queries: norm.forward(queries), layers, output, window: sizes.window })
    }

    /// `[rows, encoder width]` to `[windows * queries, text width]`; zeros fill the last window.
    pub(super) fn forward(&self, x: Tensor<2>, device: Device) -> Tensor<2> {
        let [rows, _] = x.dims();
        let windows = rows.div_ceil(self.window);
        let x = with_zeros(x, [0, windows * self.window - rows]);
        let mut queries = self.queries.clone().repeat_dim(0, windows);
        for layer in &self.layers {
            queries = in_turn(device, || layer.forward(queries, &x, windows));
        }
        in_turn(device, || self.output.forward(queries))
    }
}

struct Layer {
    attention: Attention,
    cross: Option<Attention>,
    mlp: Mlp,
    norm: LayerNorm,
}

impl Layer {
    fn load(tensors: &mut TensorReader<'_>, name: &str, index: usize, sizes: &Sizes) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        let ProjectorSizes { hidden, intermediate, activation, eps, cross_every, .. } = sizes.projector;
        let attention = Attention::load(tensors, &part("attention"), hidden, &sizes.projector)?;
        let cross = match index.is_multiple_of(cross_every) {
            true => Some(Attention::load(tensors, &part("crossattention"), sizes.hidden, &sizes.projector)?),
            false => None,
        };
        let names = [&*part("intermediate_query.dense"), &*part("output_query.dense")];
        let mlp = Mlp::load(tensors, names, [hidden, intermediate, hidden], Bias::Present, activation)?;
        let norm = LayerNorm::load(tensors, &part("output_query.LayerNorm"), hidden, eps)?;
        Ok(Self { attention, cross, mlp, norm })
    }

    /// Queries of all windows, and the rows of all windows.
    fn forward(&self, queries: Tensor<2>, rows: &Tensor<2>, windows: usize) -> Tensor<2> {
        let x = self.attention.forward(queries.clone(), queries, windows);
        let x = match &self.cross {
            None => x,
            Some(cross) => cross.forward(x, rows.clone(), windows),
        };
        self.norm.forward(self.mlp.add_to(x.clone(), x))
    }
}

/// Attention of queries to rows of their window, with a norm after it.
struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    norm: LayerNorm,
    num_heads: usize,
}

impl Attention {
    fn load(tensors: &mut TensorReader<'_>, name: &str, keys: usize, sizes: &ProjectorSizes) -> Result<Self> {
        let ProjectorSizes { hidden, num_heads, eps, .. } = *sizes;
        let mut linear = |part: &str, inputs: usize| {
            Linear::load(tensors, &format!("{name}.{part}"), [inputs, hidden], Bias::Present)
        };
        let (query, key, value) = (
            linear("attention.query", hidden)?,
            linear("attention.key", keys)?,
            linear("attention.value", keys)?,
        );
        let output = linear("output.dense", hidden)?;
        let norm = LayerNorm::load(tensors, &format!("{name}.output.LayerNorm"), hidden, eps)?;
        Ok(Self { query, key, value, output, norm, num_heads })
    }

    fn forward(&self, x: Tensor<2>, rows: Tensor<2>, windows: usize) -> Tensor<2> {
        let [count, hidden] = x.dims();
        let head_dim = hidden / self.num_heads;
        let heads = |linear: &Linear, x: Tensor<2>| {
            let per_window = x.dims()[0] / windows;
            let split = linear.forward(x).reshape([windows, per_window, self.num_heads, head_dim]);
            split.swap_dims(1, 2) // [windows, heads, rows of a window, head_dim]
        };
        let (q, k, v) =
            (heads(&self.query, x.clone()), heads(&self.key, rows.clone()), heads(&self.value, rows));
        let scores = q.matmul(k.swap_dims(2, 3)) * (head_dim as f32).sqrt().recip();
        let attended = softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([count, hidden]);
        self.norm.forward(self.output.add_to(x, attended))
    }
}
