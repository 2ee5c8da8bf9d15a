//! SigLIP: a ViT without a class token, the tower of several families; each has its own positions. Source:
//! SigLIP (arXiv 2303.15343), SigLIP 2 (arXiv 2502.14786); `modeling_siglip.py` of transformers 5.23.0.

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_formats::Result as FormatResult;
use lm_kernels::{Device, Weight, embedding, from_host};
use lm_media::Patches;
use serde::Deserialize;

use super::settings::TowerSizes;
use crate::encoders::blocks::{Bias, EncoderLayer, EncoderSizes, LayerNorm, Linear, TensorReader, in_turn};
use crate::encoders::settings::EncoderSettings;
use crate::error::Result;
use crate::gguf::{Numbering, TensorList, TensorNames};
use crate::spec::activation;

/// Keys of `vision_config`.
#[derive(Deserialize)]
struct Keys {
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_channels: usize,
    patch_size: usize,
    layer_norm_eps: f64,
    hidden_act: String,
}

/// Values of `SiglipVisionConfig` and `Siglip2VisionConfig` for keys that files omit.
pub(super) const SIGLIP_DEFAULTS: &str = r#"{
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3,
    "image_size": 224, "num_patches": 256, "patch_size": 16, "layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh"
}"#;

/// Settings of a SigLIP tower in `mmproj` files: key without `clip.vision.`, key of `vision_config`.
pub(super) const SIGLIP_KEYS: TensorNames = &[
    ("attention.head_count", "num_attention_heads"),
    ("attention.layer_norm_epsilon", "layer_norm_eps"),
    ("block_count", "num_hidden_layers"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("image_size", "image_size"),
    ("patch_size", "patch_size"),
];

/// Tensors of the layers in `mmproj` files, without the family's prefix.
pub(super) const SIGLIP_LAYERS: TensorList = TensorList {
    file: "v.blk.",
    model: "",
    numbering: Numbering::Same,
    names: &[
        ("attn_k", "self_attn.k_proj"),
        ("attn_out", "self_attn.out_proj"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("ffn_down", "mlp.fc2"),
        ("ffn_up", "mlp.fc1"),
        ("ln1", "layer_norm1"),
        ("ln2", "layer_norm2"),
    ],
    joined: None,
};

/// Description of a SigLIP tower.
#[derive(Clone, Copy)]
pub(super) struct SiglipSpec {
    pub(super) sizes: TowerSizes,
    encoder: EncoderSizes,
}

impl SiglipSpec {
    /// Reads `vision_config`, with the `defaults` of the family's class.
    pub(super) fn read(settings: &EncoderSettings, defaults: &str) -> FormatResult<Self> {
        let keys: Keys = settings.encoder(defaults)?;
        let sizes = TowerSizes {
            hidden: keys.hidden_size,
            intermediate: keys.intermediate_size,
            num_layers: keys.num_hidden_layers,
            num_heads: keys.num_attention_heads,
            patch: keys.patch_size,
        };
        sizes.check(keys.num_channels, keys.layer_norm_eps)?;
        let encoder = EncoderSizes {
            hidden: sizes.hidden,
            intermediate: sizes.intermediate,
            num_heads: sizes.num_heads,
            norm_eps: keys.layer_norm_eps as f32,
            activation: activation("vision_config.hidden_act", &keys.hidden_act)?,
        };
        Ok(Self { sizes, encoder })
    }

    /// Epsilon of the norms.
    pub(super) fn norm_eps(&self) -> f32 {
        self.encoder.norm_eps
    }
}

/// SigLIP tower without its pooling head.
pub(super) struct Siglip {
    patches: Linear,
    positions: Weight,
    layers: Vec<EncoderLayer>,
    norm: LayerNorm,
    device: Device,
    burn_device: BurnDevice,
    patch_len: usize,
}

impl Siglip {
    /// Loads the tower under `prefix`, with a table of `num_positions` rows.
    pub(super) fn load(
        tensors: &mut TensorReader<'_>,
        prefix: &str,
        spec: &SiglipSpec,
        num_positions: usize,
    ) -> Result<Self> {
        let SiglipSpec { sizes, encoder } = *spec;
        let name = |part: &str| format!("{prefix}{part}");
        let patch = [sizes.patch_len(), sizes.hidden];
        let patches = Linear::load(tensors, &name("embeddings.patch_embedding"), patch, Bias::Present)?;
        let table = name("embeddings.position_embedding.weight");
        let positions = tensors.matrix(&table, [num_positions, sizes.hidden])?;
        let layer = |index| EncoderLayer::load(tensors, &name(&format!("encoder.layers.{index}")), encoder);
        let layers = (0..sizes.num_layers).map(layer).collect::<Result<_>>()?;
        let norm = LayerNorm::load(tensors, &name("post_layernorm"), sizes.hidden, encoder.norm_eps)?;
        let (device, burn_device) = (tensors.device(), tensors.burn_device().clone());
        Ok(Self { patches, positions, layers, norm, device, burn_device, patch_len: sizes.patch_len() })
    }

    /// Device of the weights.
    pub(super) fn device(&self) -> Device {
        self.device
    }

    /// Device of the weights, as a burn device.
    pub(super) fn burn_device(&self) -> &BurnDevice {
        &self.burn_device
    }

    /// Rows of the position table: `[ids, hidden]`.
    pub(super) fn positions(&self, ids: &[u32]) -> Tensor<2> {
        embedding(&self.positions, ids, &self.burn_device)
    }

    /// Runs the tower over the patches of one image, to whose embeddings `positions`, `[patches, hidden]`,
    /// are added: `[patches, hidden]`.
    pub(super) fn forward(&self, patches: Patches, positions: Tensor<2>) -> Tensor<2> {
        let count = patches.rows * patches.columns;
        let mut x = in_turn(self.device, || {
            let x = from_host(patches.values, [count, self.patch_len], &self.burn_device);
            self.patches.forward(x) + positions
        });
        for layer in &self.layers {
            x = in_turn(self.device, || layer.forward(x, &[count]));
        }
        in_turn(self.device, || self.norm.forward(x))
    }
}
