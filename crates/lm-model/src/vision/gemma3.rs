//! Gemma 3: SigLIP over images of one size, patches pooled to a square of tokens, an RMS norm and a
//! projection. Source: Gemma 3 Technical Report (arXiv 2503.19786); `modeling_gemma3.py`,
//! `processing_gemma3.py` of transformers 5.23.0.

use std::sync::Arc;

use lm_formats::Result as FormatResult;
use lm_media::families::Gemma3 as Preprocessing;
use lm_media::{Image, ImageSize, Normalization};
use serde::Deserialize;
use serde_json::json;

use super::siglip::{SIGLIP_DEFAULTS, SIGLIP_KEYS, SIGLIP_LAYERS, Siglip, SiglipSpec};
use super::{VisionFamily, pooled};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::checkpoint::StoredValues;
use crate::config::{invalid, unsupported};
use crate::encoders::blocks::{Linear, RmsNorm, TensorReader, turn};
use crate::encoders::encoded;
use crate::encoders::settings::{EncoderSettings, check_size};
use crate::error::Result;
use crate::gguf::{Clip, GgufProjector, PatchOrder, ProjectorConfig, TensorList};
use crate::media::{ImageOptions, MediaLayout, MediaRows, VisionEncoder};

pub(super) const FAMILY: VisionFamily = VisionFamily {
    model_types: &["gemma3"],
    goldens: &["gemma3-tiny", "gemma3-tiny-bf16"],
    prefixes: &[
        "model.vision_tower.",
        "vision_tower.",
        "model.multi_modal_projector.",
        "multi_modal_projector.",
    ],
    first_weights: &[
        "vision_tower.vision_model.embeddings.patch_embedding.weight",
        "model.vision_tower.vision_model.embeddings.patch_embedding.weight",
        "model.vision_tower.embeddings.patch_embedding.weight",
    ],
    gguf: Some(&GGUF),
    load,
};

const GGUF: GgufProjector = GgufProjector {
    projector_type: "gemma3",
    text_models: &["gemma3"],
    keys: SIGLIP_KEYS,
    harmless: &[],
    activation: Some("hidden_act"),
    read: read_gguf,
    tensors: &[
        ("mm.input_projection.weight", "multi_modal_projector.mm_input_projection_weight"),
        ("mm.soft_emb_norm", "multi_modal_projector.mm_soft_emb_norm"),
        ("v.patch_embd", "vision_tower.vision_model.embeddings.patch_embedding"),
        ("v.position_embd", "vision_tower.vision_model.embeddings.position_embedding"),
        ("v.post_ln", "vision_tower.vision_model.post_layernorm"),
    ],
    lists: &[TensorList { model: "vision_tower.vision_model.encoder.layers.", ..SIGLIP_LAYERS }],
    values: &[("mm.soft_emb_norm.weight", StoredValues::PlusOne)],
    patches: ("vision_tower.vision_model.embeddings.patch_embedding.weight", PatchOrder::Same),
};

/// Files have the side of a token's square of patches: 4 in published models, which have no key for it.
fn read_gguf(clip: &Clip<'_>, config: &mut ProjectorConfig) -> FormatResult<()> {
    const SCALE: &str = "projector.scale_factor";
    let (side, patch) = (clip.required_size("image_size")?, clip.required_size("patch_size")?);
    let scale = clip.size(SCALE)?.unwrap_or(4);
    let patches = side.checked_div(patch).unwrap_or(0);
    if scale == 0 || scale > patches {
        return Err(clip.invalid(SCALE, scale, format!("1 to the {patches} patches of a side")));
    }
    let tokens = (patches / scale).saturating_pow(2);
    config.outer.insert("mm_tokens_per_image".into(), tokens.into());
    Ok(())
}

const TOWERS: &[&str] =
    &["vision_tower.vision_model.", "model.vision_tower.vision_model.", "model.vision_tower."];
const PROJECTORS: &[&str] = &["multi_modal_projector.", "model.multi_modal_projector."];

/// Vision encoder of Gemma 3.
struct Gemma3 {
    preprocessing: Preprocessing,
    tower: Siglip,
    norm: RmsNorm,
    projection: Linear,
}

#[derive(Deserialize)]
struct Keys {
    image_size: usize,
}

#[derive(Deserialize)]
struct OuterKeys {
    mm_tokens_per_image: usize,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn VisionEncoder>> {
    let Keys { image_size } = settings.encoder(SIGLIP_DEFAULTS)?;
    check_size("vision_config.image_size", image_size, 1..=4096)?;
    let spec = SiglipSpec::read(settings, SIGLIP_DEFAULTS)?;
    let preprocessing = preprocessing(settings, image_size, spec.sizes.patch)?;
    let num_positions = (image_size / spec.sizes.patch).pow(2);
    let tower = tensors.prefix(TOWERS, "embeddings.patch_embedding.weight")?;
    let tower = Siglip::load(tensors, tower, &spec, num_positions)?;
    let projector = tensors.prefix(PROJECTORS, "mm_soft_emb_norm.weight")?;
    let hidden = spec.sizes.hidden;
    let norm =
        RmsNorm::load(tensors, &format!("{projector}mm_soft_emb_norm"), hidden, spec.norm_eps())?.plus_one();
    let projection = format!("{projector}mm_input_projection_weight");
    let projection = Linear::of_weight(tensors.transposed(&projection, [settings.text_width, hidden])?);
    Ok(Arc::new(Gemma3 { preprocessing, tower, norm, projection }))
}

/// Checks that patches and tokens form squares that fit into each other, and that the image processor does
/// nothing else.
fn preprocessing(settings: &EncoderSettings, side: usize, patch: usize) -> FormatResult<Preprocessing> {
    let OuterKeys { mm_tokens_per_image: tokens } = settings.outer(r#"{"mm_tokens_per_image": 256}"#)?;
    if !side.is_multiple_of(patch) {
        return Err(invalid("vision_config.image_size", side, format!("a multiple of patch_size = {patch}")));
    }
    let patches = side / patch;
    let square = tokens.isqrt();
    if tokens == 0 || square * square != tokens || !patches.is_multiple_of(square) {
        let expected = format!("the square of a divisor of {patches} patches");
        return Err(invalid("mm_tokens_per_image", tokens, expected));
    }
    settings.expect("do_pan_and_scan", false)?;
    settings.expect("size", json!({"height": side, "width": side}))?;
    settings.expect("resample", 2)?;
    let normalization = settings.normalization(Normalization::HALF)?;
    if normalization != Normalization::HALF {
        let Normalization { mean, std } = normalization;
        return Err(unsupported(
            "image_mean, image_std",
            format!("{mean:?}, {std:?}"),
            "0.5 for all channels",
        ));
    }
    Ok(Preprocessing { side, patch, tokens })
}

impl VisionEncoder for Gemma3 {
    fn placeholder(&self) -> &str {
        "<start_of_image>"
    }

    fn token(&self) -> &str {
        "<image_soft_token>"
    }

    fn layout(&self, _: ImageSize, _: &ImageOptions) -> Result<MediaLayout> {
        let rows = MediaRows::sequential(self.preprocessing.tokens, AttentionKind::Bidirectional);
        Ok(MediaLayout::enclosed("\n\n<start_of_image>", rows, "<end_of_image>\n\n"))
    }

    fn encode(&self, image: &Image, _: &ImageOptions) -> Result<EncodedMedia> {
        let patches = self.preprocessing.patches(image)?;
        let side = patches.rows;
        let ids: Vec<u32> = (0..(side * side) as u32).collect();
        let x = self.tower.forward(patches, self.tower.positions(&ids)); // [patches, hidden]
        let _turn = turn(self.tower.device());
        let pooled = pooled(x, side, side, side / self.preprocessing.tokens.isqrt()); // [tokens, hidden]
        encoded(self.projection.forward(self.norm.forward(pooled)))
    }
}
