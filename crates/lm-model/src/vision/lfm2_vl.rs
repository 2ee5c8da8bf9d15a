//! LFM2-VL: SigLIP 2 with positions resized to each view, squares of patches joined to tokens, and an MLP.
//! Source: `config.json` of LiquidAI/LFM2-VL-450M; `modeling_lfm2_vl.py`, `modeling_siglip2.py`,
//! `processing_lfm2_vl.py` of transformers 5.23.0.

use std::sync::Arc;

use lm_formats::Result as FormatResult;
use lm_kernels::{from_host, to_host};
use lm_media::families::Lfm2Vl as Preprocessing;
use lm_media::{Image, ImageSize, Normalization, Patches};
use serde::Deserialize;
use serde_json::Value;

use super::position_table::PositionTable;
use super::siglip::{SIGLIP_DEFAULTS, SIGLIP_KEYS, SIGLIP_LAYERS, Siglip, SiglipSpec};
use super::{VisionFamily, concatenated, joined};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::config::invalid;
use crate::encoders::blocks::{LayerNorm, Mlp, TensorReader, turn};
use crate::encoders::encoded;
use crate::encoders::settings::{EncoderSettings, MAX_WIDTH, check_size};
use crate::error::Result;
use crate::gguf::{Clip, GgufProjector, PatchOrder, ProjectorConfig, TensorList};
use crate::media::{ImageOptions, MediaLayout, MediaPiece, MediaRows, VisionEncoder};
use crate::spec::activation;

pub(super) const FAMILY: VisionFamily = VisionFamily {
    model_types: &["lfm2_vl"],
    goldens: &["lfm2-vl-tiny", "lfm2-vl-tiny-bf16"],
    prefixes: &["model.multi_modal_projector.", "model.vision_tower."],
    first_weights: &[
        "model.vision_tower.vision_model.embeddings.patch_embedding.weight",
        "model.vision_tower.embeddings.patch_embedding.weight",
    ],
    gguf: Some(&GGUF),
    load,
};

const GGUF: GgufProjector = GgufProjector {
    projector_type: "lfm2",
    text_models: &["lfm2"],
    keys: SIGLIP_KEYS,
    harmless: &[],
    activation: Some("hidden_act"),
    read: read_gguf,
    tensors: &[
        ("mm.1", "model.multi_modal_projector.linear_1"),
        ("mm.2", "model.multi_modal_projector.linear_2"),
        ("mm.input_norm", "model.multi_modal_projector.layer_norm"),
        ("v.patch_embd", "model.vision_tower.vision_model.embeddings.patch_embedding"),
        ("v.position_embd", "model.vision_tower.vision_model.embeddings.position_embedding"),
        ("v.post_ln", "model.vision_tower.vision_model.post_layernorm"),
    ],
    lists: &[TensorList { model: "model.vision_tower.vision_model.encoder.layers.", ..SIGLIP_LAYERS }],
    values: &[],
    patches: ("model.vision_tower.vision_model.embeddings.patch_embedding.weight", PatchOrder::ChannelsLast),
};

/// The table of positions, the width of the projector, its norm and its biases are as the tensors say.
fn read_gguf(clip: &Clip<'_>, config: &mut ProjectorConfig) -> FormatResult<()> {
    config.vision.insert("num_patches".into(), clip.rows("v.position_embd.weight")?.into());
    let mut put = |key: &str, value: Value| drop(config.outer.insert(key.into(), value));
    put("downsample_factor", clip.size("projector.scale_factor")?.unwrap_or(2).into());
    put("projector_hidden_size", clip.rows("mm.1.weight")?.into());
    put("projector_bias", clip.tensor("mm.1.bias").is_some().into());
    put("projector_use_layernorm", clip.tensor("mm.input_norm.weight").is_some().into());
    Ok(())
}

const TOWERS: &[&str] = &["model.vision_tower.vision_model.", "model.vision_tower."];
const PROJECTOR: &str = "model.multi_modal_projector";

/// Epsilon of the projector's norm; files have no key for it.
const PROJECTOR_NORM_EPS: f32 = 1e-5;

/// Values of `Lfm2VlConfig` for keys that files omit.
const OUTER_DEFAULTS: &str = r#"{
    "projector_hidden_act": "gelu", "projector_hidden_size": 2560, "projector_bias": true, "projector_use_layernorm": true,
    "downsample_factor": 2
}"#;

/// Values of `Lfm2VlImageProcessor` for keys that files omit.
const PREPROCESSOR_DEFAULTS: &str = r#"{
    "do_image_splitting": true, "min_tiles": 2, "max_tiles": 10, "use_thumbnail": true, "min_image_tokens": 64,
    "max_image_tokens": 256, "tile_size": 512, "max_pixels_tolerance": 2.0
}"#;

/// Vision encoder of LFM2-VL.
struct Lfm2Vl {
    preprocessing: Preprocessing,
    tower: Siglip,
    positions: PositionTable,
    norm: Option<LayerNorm>,
    projection: Mlp,
}

#[derive(Deserialize)]
struct Keys {
    num_patches: usize,
}

#[derive(Deserialize)]
struct OuterKeys {
    projector_hidden_act: String,
    projector_hidden_size: usize,
    projector_bias: bool,
    projector_use_layernorm: bool,
    downsample_factor: usize,
}

#[derive(Deserialize)]
struct PreprocessorKeys {
    do_image_splitting: bool,
    min_tiles: usize,
    max_tiles: usize,
    use_thumbnail: bool,
    min_image_tokens: usize,
    max_image_tokens: usize,
    tile_size: usize,
    max_pixels_tolerance: f64,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn VisionEncoder>> {
    let (Keys { num_patches }, keys) =
        (settings.encoder(SIGLIP_DEFAULTS)?, settings.outer::<OuterKeys>(OUTER_DEFAULTS)?);
    check_size("vision_config.num_patches", num_patches, 1..=1 << 20)?;
    let side = num_patches.isqrt();
    if side * side != num_patches {
        return Err(invalid("vision_config.num_patches", num_patches, "a square").into());
    }
    let spec = SiglipSpec::read(settings, SIGLIP_DEFAULTS)?;
    let (factor, inner) = (keys.downsample_factor, keys.projector_hidden_size);
    if !(1..=64).contains(&factor) {
        return Err(invalid("downsample_factor", factor, "1 to 64").into());
    }
    if !(1..=MAX_WIDTH).contains(&inner) {
        return Err(invalid("projector_hidden_size", inner, format!("1 to {MAX_WIDTH}")).into());
    }
    let preprocessing = preprocessing(settings, spec.sizes.patch, factor)?;
    let prefix = tensors.prefix(TOWERS, "embeddings.patch_embedding.weight")?;
    let tower = Siglip::load(tensors, prefix, &spec, num_patches)?;
    let ids: Vec<u32> = (0..num_patches as u32).collect();
    let positions = PositionTable { side, width: spec.sizes.hidden, values: to_host(tower.positions(&ids))? };
    let joined = spec.sizes.hidden * factor * factor;
    let norm = keys
        .projector_use_layernorm
        .then(|| LayerNorm::load(tensors, &format!("{PROJECTOR}.layer_norm"), joined, PROJECTOR_NORM_EPS))
        .transpose()?;
    let [first, second] = [1, 2].map(|number| format!("{PROJECTOR}.linear_{number}"));
    let widths = [joined, inner, settings.text_width];
    let act = activation("projector_hidden_act", &keys.projector_hidden_act)?;
    let projection = Mlp::load(tensors, [&first, &second], widths, keys.projector_bias.into(), act)?;
    Ok(Arc::new(Lfm2Vl { preprocessing, tower, positions, norm, projection }))
}

fn preprocessing(settings: &EncoderSettings, patch: usize, downsample: usize) -> FormatResult<Preprocessing> {
    let keys: PreprocessorKeys = settings.preprocessor(PREPROCESSOR_DEFAULTS)?;
    settings.expect("encoder_patch_size", patch)?;
    settings.expect("downsample_factor", downsample)?;
    settings.expect("resample", 2)?;
    settings.expect("do_resize", true)?;
    let tiles = if keys.do_image_splitting { keys.min_tiles..=keys.max_tiles } else { 1..=1 };
    Ok(Preprocessing {
        patch,
        downsample,
        image_tokens: keys.min_image_tokens..=keys.max_image_tokens,
        tile: keys.tile_size,
        tiles,
        tolerance: keys.max_pixels_tolerance,
        thumbnail: keys.use_thumbnail,
        normalization: settings.normalization(Normalization::HALF)?,
    })
}

impl Lfm2Vl {
    fn encode_view(&self, patches: Patches) -> Result<EncodedMedia> {
        let (rows, columns) = (patches.rows, patches.columns);
        let positions = self.positions.resized(rows, columns);
        let positions =
            from_host(positions, [rows * columns, self.positions.width], self.tower.burn_device());
        let x = self.tower.forward(patches, positions);
        let _turn = turn(self.tower.device());
        let x = joined(x, rows, columns, self.preprocessing.downsample);
        let x = match &self.norm {
            None => x,
            Some(norm) => norm.forward(x),
        };
        encoded(self.projection.forward(x))
    }
}

impl VisionEncoder for Lfm2Vl {
    fn placeholder(&self) -> &str {
        "<image>"
    }

    fn token(&self) -> &str {
        "<image>"
    }

    fn layout(&self, size: ImageSize, _: &ImageOptions) -> Result<MediaLayout> {
        let grid = self.preprocessing.grid(size)?;
        let view = |size| {
            let count = self.preprocessing.view_tokens(size);
            MediaPiece::Rows(MediaRows::sequential(count, AttentionKind::Causal))
        };
        let mut pieces = Vec::new();
        let mut text = "<|image_start|>".to_owned();
        for tile in 0..grid.rows * grid.columns {
            let (row, column) = (tile / grid.columns + 1, tile % grid.columns + 1);
            text.push_str(&format!("<|img_row_{row}_col_{column}|>"));
            pieces.extend([MediaPiece::Text(std::mem::take(&mut text)), view(grid.tile)]);
        }
        if let Some(overview) = grid.overview {
            if grid.rows > 0 {
                text.push_str("<|img_thumbnail|>");
            }
            pieces.extend([MediaPiece::Text(std::mem::take(&mut text)), view(overview)]);
        }
        pieces.push(MediaPiece::Text("<|image_end|>".into()));
        Ok(MediaLayout { pieces })
    }

    fn encode(&self, image: &Image, _: &ImageOptions) -> Result<EncodedMedia> {
        let views = self.preprocessing.patches(image)?;
        concatenated(views.into_iter().map(|patches| self.encode_view(patches)))
    }
}
