//! Differences between the towers of Qwen's models, as data.

use lm_formats::Result;
use lm_kernels::Activation;
use serde::Deserialize;

use crate::config::{invalid, unsupported};
use crate::encoders::blocks::Bias;
use crate::encoders::settings::{EncoderSettings, MAX_LAYERS, MAX_WIDTH, check_size};
use crate::spec::activation;

/// Tower of one model, apart from its sizes.
pub(super) struct Variant {
    /// Values of the reference's config class for keys that files omit, a JSON object.
    defaults: &'static str,
    pub(super) patch_bias: Bias,
    pub(super) norm: NormKind,
    pub(super) mlp: MlpNames,
    pub(super) merger: MergerNames,
    /// Attention of most layers.
    windows: Windows,
}

/// Norm of the tower and its merger.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NormKind {
    Layer,
    Rms,
}

/// Modules of a feed-forward block.
pub(super) enum MlpNames {
    Plain([&'static str; 2]),
    /// Gate, up and down.
    Gated([&'static str; 3]),
}

/// Modules of a merger: its norm and its two projections.
pub(super) struct MergerNames {
    pub(super) norm: &'static str,
    pub(super) projections: [&'static str; 2],
}

#[derive(PartialEq)]
enum Windows {
    Absent,
    /// All layers but those of `fullatt_block_indexes` attend within windows of `window_size` pixels.
    InMostLayers,
}

const MERGER_OF_QWEN2: MergerNames = MergerNames { norm: "ln_q", projections: ["mlp.0", "mlp.2"] };

pub(super) const QWEN2: Variant = Variant {
    defaults: r#"{
        "depth": 32, "embed_dim": 1280, "hidden_size": 3584, "hidden_act": "quick_gelu", "mlp_ratio": 4, "num_heads": 16,
        "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2
    }"#,
    patch_bias: Bias::Absent,
    norm: NormKind::Layer,
    mlp: MlpNames::Plain(["mlp.fc1", "mlp.fc2"]),
    merger: MERGER_OF_QWEN2,
    windows: Windows::Absent,
};

pub(super) const QWEN2_5: Variant = Variant {
    defaults: r#"{
        "depth": 32, "hidden_size": 3584, "hidden_act": "silu", "intermediate_size": 3420, "num_heads": 16, "in_channels": 3,
        "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "out_hidden_size": 3584,
        "fullatt_block_indexes": [7, 15, 23, 31]
    }"#,
    patch_bias: Bias::Absent,
    norm: NormKind::Rms,
    mlp: MlpNames::Gated(["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]),
    merger: MERGER_OF_QWEN2,
    windows: Windows::InMostLayers,
};

pub(super) const QWEN3: Variant = Variant {
    defaults: r#"{
        "depth": 27, "hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 4304, "num_heads": 16,
        "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
        "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]
    }"#,
    ..QWEN3_5
};

pub(super) const QWEN3_5: Variant = Variant {
    defaults: r#"{
        "depth": 27, "hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "intermediate_size": 4304, "num_heads": 16,
        "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
        "num_position_embeddings": 2304
    }"#,
    patch_bias: Bias::Present,
    norm: NormKind::Layer,
    mlp: MlpNames::Plain(["mlp.linear_fc1", "mlp.linear_fc2"]),
    merger: MergerNames { norm: "norm", projections: ["linear_fc1", "linear_fc2"] },
    windows: Windows::Absent,
};

/// Keys of `vision_config`.
#[derive(Deserialize)]
struct Keys {
    depth: usize,
    /// Width of the tower; of the decoder, where there is `embed_dim`.
    hidden_size: usize,
    embed_dim: Option<usize>,
    mlp_ratio: Option<f64>,
    intermediate_size: Option<usize>,
    out_hidden_size: Option<usize>,
    hidden_act: String,
    num_heads: usize,
    in_channels: usize,
    patch_size: usize,
    spatial_merge_size: usize,
    temporal_patch_size: usize,
    window_size: Option<usize>,
    #[serde(default)]
    fullatt_block_indexes: Vec<usize>,
    num_position_embeddings: Option<usize>,
    #[serde(default)]
    deepstack_visual_indexes: Vec<usize>,
}

/// Sizes of a tower.
pub(super) struct Sizes {
    pub(super) depth: usize,
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    /// Width of the decoder.
    pub(super) out: usize,
    pub(super) num_heads: usize,
    pub(super) activation: Activation,
    pub(super) patch: usize,
    /// Patches of a token's side.
    pub(super) merge: usize,
    pub(super) frames: usize,
    /// Side of the square of learned positions.
    pub(super) position_side: Option<usize>,
    /// Tokens of a window's side, and the layers that attend to the whole image all the same.
    pub(super) windows: Option<(usize, Vec<usize>)>,
    /// Layers after which rows for the decoder's first layers are made.
    pub(super) deep_layers: Vec<usize>,
}

impl Sizes {
    /// Numbers of a patch.
    pub(super) fn patch_len(&self) -> usize {
        3 * self.frames * self.patch * self.patch
    }

    /// Width of the patches of a token together.
    pub(super) fn token_width(&self) -> usize {
        self.hidden * self.merge * self.merge
    }
}

impl Variant {
    /// Reads and checks `vision_config`.
    pub(super) fn sizes(&self, settings: &EncoderSettings) -> Result<Sizes> {
        let keys: Keys = settings.encoder(self.defaults)?;
        let hidden = keys.embed_dim.unwrap_or(keys.hidden_size);
        let ratio = keys.mlp_ratio.map(|ratio| (hidden as f64 * ratio) as usize);
        let sizes = Sizes {
            depth: keys.depth,
            hidden,
            intermediate: keys.intermediate_size.or(ratio).unwrap_or_default(),
            out: keys.out_hidden_size.unwrap_or(keys.hidden_size),
            num_heads: keys.num_heads,
            activation: activation("vision_config.hidden_act", &keys.hidden_act)?,
            patch: keys.patch_size,
            merge: keys.spatial_merge_size,
            frames: keys.temporal_patch_size,
            position_side: keys.num_position_embeddings.map(usize::isqrt),
            windows: None,
            deep_layers: keys.deepstack_visual_indexes,
        };
        sizes.check(keys.in_channels, settings.text_width)?;
        let windows = (self.windows == Windows::InMostLayers).then_some(keys.window_size).flatten();
        let windows = windows.map(|pixels| (pixels / sizes.merge / sizes.patch, keys.fullatt_block_indexes));
        if let (Some(pixels), Some((0, _))) = (keys.window_size, &windows) {
            let expected = format!("at least a token of {} pixels", sizes.merge * sizes.patch);
            return Err(invalid("vision_config.window_size", pixels, expected));
        }
        Ok(Sizes { windows, ..sizes })
    }
}

impl Sizes {
    fn check(&self, in_channels: usize, text_width: usize) -> Result<()> {
        let ranges = [
            ("depth", self.depth, MAX_LAYERS),
            ("hidden_size", self.hidden, MAX_WIDTH),
            ("intermediate_size", self.intermediate, MAX_WIDTH),
            ("num_heads", self.num_heads, self.hidden),
            ("patch_size", self.patch, 256),
            ("spatial_merge_size", self.merge, 16),
            ("temporal_patch_size", self.frames, 16),
            ("num_position_embeddings", self.position_side.unwrap_or(1), 1 << 10),
        ];
        for (key, size, most) in ranges {
            check_size(&format!("vision_config.{key}"), size, 1..=most)?;
        }
        if !self.hidden.is_multiple_of(4 * self.num_heads) {
            let expected = format!("a divisor of a fourth of the width {}", self.hidden);
            return Err(invalid("vision_config.num_heads", self.num_heads, expected));
        }
        if in_channels != 3 {
            return Err(unsupported("vision_config.in_channels", in_channels, "3"));
        }
        if self.out != text_width {
            let expected = format!("the decoder's hidden_size = {text_width}");
            return Err(invalid("vision_config.out_hidden_size", self.out, expected));
        }
        match self.deep_layers.iter().find(|&&layer| layer >= self.depth) {
            Some(layer) => Err(invalid(
                "vision_config.deepstack_visual_indexes",
                layer,
                format!("less than depth = {}", self.depth),
            )),
            None => Ok(()),
        }
    }
}
