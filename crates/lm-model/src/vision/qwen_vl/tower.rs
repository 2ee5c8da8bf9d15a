use std::sync::Arc;

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{Activation, Device, RopeAngles, RopeTable, embedding, from_host, to_host};
use lm_media::Patches;

use super::patch_places::{PatchPlaces, interpolated};
use super::variant::{MergerNames, MlpNames, NormKind, Sizes, Variant};
use crate::batch::{Embeddings, EncodedMedia};
use crate::encoders::blocks::{Bias, LayerNorm, Linear, Mlp, Norm, RmsNorm, TensorReader, turn};
use crate::error::Result;

/// Epsilon of all norms, which no file has a key for.
const NORM_EPS: f32 = 1e-6;
/// Base of the rotary positions, likewise.
const ROPE_THETA: f64 = 10_000.0;

/// ViT with rotary positions, and its mergers of patches to rows of the decoder.
pub(super) struct Tower {
    sizes: Sizes,
    patches: Linear,
    /// Learned positions, `[side, side, hidden]`.
    positions: Option<Vec<f32>>,
    rope: RopeTable,
    layers: Vec<Layer>,
    merger: Merger,
    /// Those of [`Sizes::deep_layers`].
    deep_mergers: Vec<Merger>,
    device: Device,
    burn_device: BurnDevice,
}

impl Tower {
    pub(super) fn load(
        tensors: &mut TensorReader<'_>,
        prefix: &str,
        variant: &Variant,
        sizes: Sizes,
    ) -> Result<Self> {
        let name = |part: &str| format!("{prefix}{part}");
        let patch = [sizes.patch_len(), sizes.hidden];
        let patches = Linear::load(tensors, &name("patch_embed.proj"), patch, variant.patch_bias)?;
        let positions =
            sizes.position_side.map(|side| positions(tensors, &name("pos_embed.weight"), side, sizes.hidden));
        let layer = |index| Layer::load(tensors, &name(&format!("blocks.{index}")), variant, &sizes);
        let layers = (0..sizes.depth).map(layer).collect::<Result<_>>()?;
        let merger = Merger::load(tensors, &name("merger"), variant, &sizes, NormPlace::Patch)?;
        let deep = |index| name(&format!("deepstack_merger_list.{index}"));
        let deep = (0..sizes.deep_layers.len())
            .map(|index| Merger::load(tensors, &deep(index), variant, &sizes, NormPlace::Token));
        let deep_mergers = deep.collect::<Result<_>>()?;
        let (device, burn_device) = (tensors.device(), tensors.burn_device().clone());
        let positions = positions.transpose()?;
        Ok(Self {
            rope: rope_table(&sizes),
            sizes,
            patches,
            positions,
            layers,
            merger,
            deep_mergers,
            device,
            burn_device,
        })
    }

    /// Runs the tower over the patches of one image.
    pub(super) fn encode(&self, patches: Patches) -> Result<EncodedMedia> {
        let shape = [patches.rows, patches.columns];
        let window = self.sizes.windows.as_ref().map(|(side, _)| *side);
        let places = PatchPlaces::new(shape, self.sizes.merge, window);
        let rotations = Arc::new(self.rotations(&places));
        let whole = [places.patches.len()];
        let mut x = self.embedded(patches.values, shape, &places); // [patches, hidden]
        let mut deep = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let _turn = turn(self.device);
            let in_windows = self.sizes.windows.as_ref().is_some_and(|(_, full)| !full.contains(&index));
            x = layer.forward(x, if in_windows { &places.windows } else { &whole }, &rotations);
            if let Some(merger) = self.sizes.deep_layers.iter().position(|&deep| deep == index) {
                deep.push(self.rows(&self.deep_mergers[merger], x.clone(), &places)?);
            }
        }
        let _turn = turn(self.device);
        Ok(EncodedMedia { rows: self.rows(&self.merger, x, &places)?, deep })
    }

    /// Patches with their learned positions: `[patches, hidden]`.
    fn embedded(&self, values: Vec<f32>, shape: [usize; 2], places: &PatchPlaces) -> Tensor<2> {
        let _turn = turn(self.device);
        let count = places.patches.len();
        let values = places.in_tower_order(values);
        let x = self.patches.forward(from_host(values, [count, self.sizes.patch_len()], &self.burn_device));
        match (&self.positions, self.sizes.position_side) {
            (Some(table), Some(side)) => {
                let positions = interpolated(table, side, shape, &places.patches);
                x + from_host(positions, [count, self.sizes.hidden], &self.burn_device)
            }
            _ => x,
        }
    }

    /// Half of a head's pairs rotate by the row of a patch, the others by its column.
    fn rotations(&self, places: &PatchPlaces) -> RopeAngles {
        let positions: Vec<_> = places.patches.iter().map(|&[row, column]| [0, row, column]).collect();
        let pairs = self.rope.inv_freq.len();
        let axes: Vec<usize> = (0..pairs).map(|pair| if pair < pairs / 2 { 1 } else { 2 }).collect();
        self.rope.angles_by_axis(&positions, &axes)
    }

    /// Rows of the decoder, in the order of the image.
    fn rows(&self, merger: &Merger, x: Tensor<2>, places: &PatchPlaces) -> Result<Embeddings> {
        let values = places.in_image_order(to_host(merger.forward(x))?);
        Ok(Embeddings { values, hidden_size: self.sizes.out })
    }
}

/// The same frequencies for the rows and for the columns.
fn rope_table(sizes: &Sizes) -> RopeTable {
    let head_dim = sizes.hidden / sizes.num_heads;
    let table = RopeTable::new(ROPE_THETA, head_dim / 2);
    RopeTable { inv_freq: [&*table.inv_freq, &*table.inv_freq].concat(), ..table }
}

/// The table of learned positions on the host.
fn positions(tensors: &mut TensorReader<'_>, name: &str, side: usize, hidden: usize) -> Result<Vec<f32>> {
    let table = tensors.matrix(name, [side * side, hidden])?;
    let ids: Vec<u32> = (0..(side * side) as u32).collect();
    Ok(to_host(embedding(&table, &ids, tensors.burn_device()))?)
}

/// Pre-norm transformer layer over patches.
struct Layer {
    norms: [Norm; 2],
    /// Queries, keys and values.
    qkv: Linear,
    output: Linear,
    mlp: Mlp,
    num_heads: usize,
}

impl Layer {
    fn load(tensors: &mut TensorReader<'_>, name: &str, variant: &Variant, sizes: &Sizes) -> Result<Self> {
        let Sizes { hidden, intermediate, num_heads, activation, .. } = *sizes;
        let part = |part: &str| format!("{name}.{part}");
        let mut norm = |name: &str| variant.norm.load(tensors, &part(name), hidden);
        let norms = [norm("norm1")?, norm("norm2")?];
        let widths = [hidden, intermediate, hidden];
        let mlp = match variant.mlp {
            MlpNames::Plain(names) => {
                let [up, down] = names.map(part);
                Mlp::load(tensors, [&up, &down], widths, Bias::Present, activation)?
            }
            MlpNames::Gated(names) => {
                let [gate, up, down] = names.map(part);
                Mlp::load_gated(tensors, [&gate, &up, &down], widths, Bias::Present, activation)?
            }
        };
        Ok(Self {
            norms,
            qkv: Linear::load(tensors, &part("attn.qkv"), [hidden, 3 * hidden], Bias::Present)?,
            output: Linear::load(tensors, &part("attn.proj"), [hidden, hidden], Bias::Present)?,
            mlp,
            num_heads,
        })
    }

    /// Maps `[patches, hidden]` to the same shape; patches attend within segments of `lengths`.
    fn forward(&self, x: Tensor<2>, lengths: &[usize], rotations: &Arc<RopeAngles>) -> Tensor<2> {
        let [rows, hidden] = x.dims();
        let qkv = self.qkv.forward(self.norms[0].forward(x.clone())); // [patches, 3 * hidden]
        let head_dim = hidden / self.num_heads;
        let heads = |index: usize| {
            qkv.clone().narrow(1, index * hidden, hidden).reshape([rows, self.num_heads, head_dim])
        };
        let [q, k] = [0, 1].map(|index| lm_kernels::rope(heads(index), rotations)); // [patches, heads, head_dim]
        let scale = (head_dim as f32).sqrt().recip();
        let attended = lm_kernels::segment_attention(q, k, heads(2), lengths, scale, None);
        let x = self.output.add_to(x, attended.reshape([rows, hidden]));
        let normed = self.norms[1].forward(x.clone());
        self.mlp.add_to(x, normed)
    }
}

/// Joins the patches of a token and projects them to a row of the decoder.
struct Merger {
    norm: Norm,
    place: NormPlace,
    mlp: Mlp,
    token_width: usize,
}

/// Rows that a merger norms.
#[derive(Clone, Copy, PartialEq)]
enum NormPlace {
    Patch,
    Token,
}

impl Merger {
    fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        variant: &Variant,
        sizes: &Sizes,
        place: NormPlace,
    ) -> Result<Self> {
        let (token_width, MergerNames { norm, projections }) = (sizes.token_width(), &variant.merger);
        let normed = if place == NormPlace::Patch { sizes.hidden } else { token_width };
        let [up, down] = projections.map(|part| format!("{name}.{part}"));
        let widths = [token_width, token_width, sizes.out];
        Ok(Self {
            norm: variant.norm.load(tensors, &format!("{name}.{norm}"), normed)?,
            place,
            mlp: Mlp::load(tensors, [&up, &down], widths, Bias::Present, Activation::Gelu)?,
            token_width,
        })
    }

    /// `[patches, hidden]` to `[tokens, out]`.
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let ([patches, hidden], width) = (x.dims(), self.token_width);
        let joined = |x: Tensor<2>| x.reshape([patches * hidden / width, width]); // [tokens, merge² * hidden]
        self.mlp.forward(match self.place {
            NormPlace::Patch => joined(self.norm.forward(x)),
            NormPlace::Token => self.norm.forward(joined(x)),
        })
    }
}

impl NormKind {
    fn load(self, tensors: &mut TensorReader<'_>, name: &str, len: usize) -> Result<Norm> {
        Ok(match self {
            Self::Layer => LayerNorm::load(tensors, name, len, NORM_EPS)?.into(),
            Self::Rms => RmsNorm::load(tensors, name, len, NORM_EPS)?.into(),
        })
    }
}
