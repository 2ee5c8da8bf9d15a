//! Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5: one ViT with rotary positions in two dimensions, which takes
//! images in their own shape. Source: Qwen2-VL (arXiv 2409.12191), Qwen2.5-VL (arXiv 2502.13923);
//! `modeling_qwen2_vl.py`, `modeling_qwen2_5_vl.py`, `modeling_qwen3_vl.py`, `modeling_qwen3_5.py` of
//! transformers 5.23.0.

mod gguf;
mod patch_places;
mod tower;
mod variant;

use std::sync::Arc;

use lm_formats::Result as FormatResult;
use lm_media::families::QwenVl as Preprocessing;
use lm_media::{Image, ImageSize, Normalization};
use serde::Deserialize;

use self::tower::Tower;
use self::variant::{QWEN2, QWEN2_5, QWEN3, QWEN3_5, Variant};
use super::VisionFamily;
use crate::batch::{AttentionKind, EncodedMedia};
use crate::encoders::blocks::TensorReader;
use crate::encoders::settings::EncoderSettings;
use crate::error::Result;
use crate::media::{ImageOptions, MediaLayout, MediaPiece, MediaPositions, MediaRows, VisionEncoder};

const PREFIXES: &[&str] = &["model.visual.", "visual."];
const PATCH_EMBEDDINGS: &[&str] = &["model.visual.patch_embed.proj.weight", "visual.patch_embed.proj.weight"];

pub(super) const QWEN2_VL: VisionFamily = VisionFamily {
    model_types: &["qwen2_vl"],
    goldens: &["qwen2-vl-tiny"],
    prefixes: PREFIXES,
    first_weights: PATCH_EMBEDDINGS,
    gguf: Some(&gguf::QWEN2),
    load: |settings, tensors| load(settings, tensors, &QWEN2),
};

pub(super) const QWEN2_5_VL: VisionFamily = VisionFamily {
    model_types: &["qwen2_5_vl"],
    goldens: &["qwen2_5-vl-tiny"],
    prefixes: PREFIXES,
    first_weights: PATCH_EMBEDDINGS,
    gguf: Some(&gguf::QWEN2_5),
    load: |settings, tensors| load(settings, tensors, &QWEN2_5),
};

pub(super) const QWEN3_VL: VisionFamily = VisionFamily {
    model_types: &["qwen3_vl"],
    goldens: &["qwen3-vl-tiny", "qwen3-vl-tiny-bf16"],
    prefixes: PREFIXES,
    first_weights: PATCH_EMBEDDINGS,
    gguf: Some(&gguf::QWEN3),
    load: |settings, tensors| load(settings, tensors, &QWEN3),
};

pub(super) const QWEN3_5_VL: VisionFamily = VisionFamily {
    model_types: &["qwen3_5"],
    goldens: &["qwen3_5-vl-tiny"],
    prefixes: PREFIXES,
    first_weights: PATCH_EMBEDDINGS,
    gguf: None, // That of Qwen3-VL.
    load: |settings, tensors| load(settings, tensors, &QWEN3_5),
};

/// Token of each row of an image; a chat template writes it once.
const TOKEN: &str = "<|image_pad|>";

/// Vision encoder of Qwen's vision models.
struct QwenVl {
    preprocessing: Preprocessing,
    tower: Tower,
}

fn load(
    settings: &EncoderSettings,
    tensors: &mut TensorReader<'_>,
    variant: &Variant,
) -> Result<Arc<dyn VisionEncoder>> {
    let sizes = variant.sizes(settings)?;
    let preprocessing = preprocessing(settings, [sizes.patch, sizes.merge, sizes.frames])?;
    let prefix = tensors.prefix(PREFIXES, "patch_embed.proj.weight")?;
    let tower = Tower::load(tensors, prefix, variant, sizes)?;
    Ok(Arc::new(QwenVl { preprocessing, tower }))
}

/// Keys of the image processor.
#[derive(Deserialize)]
struct PreprocessorKeys {
    size: Option<Edges>,
    /// Takes precedence over `size`.
    min_pixels: Option<usize>,
    /// Likewise.
    max_pixels: Option<usize>,
}

/// Numbers of pixels, despite their names.
#[derive(Deserialize)]
struct Edges {
    shortest_edge: Option<usize>,
    longest_edge: Option<usize>,
}

fn preprocessing(
    settings: &EncoderSettings,
    [patch, merge, frames]: [usize; 3],
) -> FormatResult<Preprocessing> {
    let expected =
        [("patch_size", patch), ("merge_size", merge), ("temporal_patch_size", frames), ("resample", 3)];
    for (key, value) in expected {
        settings.expect(key, value)?;
    }
    for key in ["do_resize", "do_rescale"] {
        settings.expect(key, true)?;
    }
    let keys: PreprocessorKeys = settings.preprocessor("{}")?;
    let default = Preprocessing::default();
    let (least, most) = keys.size.map_or((None, None), |size| (size.shortest_edge, size.longest_edge));
    Ok(Preprocessing {
        patch,
        merge,
        frames,
        min_pixels: keys.min_pixels.or(least).unwrap_or(default.min_pixels),
        max_pixels: keys.max_pixels.or(most).unwrap_or(default.max_pixels),
        normalization: settings.normalization(Normalization::CLIP)?,
    })
}

impl QwenVl {
    /// The preprocessing with the pixels limited by `options`.
    fn preprocessing(&self, options: &ImageOptions) -> Preprocessing {
        let Preprocessing { patch, merge, min_pixels, max_pixels, .. } = self.preprocessing;
        let budget = options.token_budget.map(|tokens| tokens.saturating_mul((patch * merge).pow(2)));
        let max_pixels = budget.map_or(max_pixels, |budget| budget.min(max_pixels));
        Preprocessing { min_pixels: min_pixels.min(max_pixels), max_pixels, ..self.preprocessing }
    }
}

impl VisionEncoder for QwenVl {
    fn placeholder(&self) -> &str {
        TOKEN
    }

    fn token(&self) -> &str {
        TOKEN
    }

    fn layout(&self, size: ImageSize, options: &ImageOptions) -> Result<MediaLayout> {
        let side = self.preprocessing.patch * self.preprocessing.merge;
        let ImageSize { width, height } = self.preprocessing(options).resized_size(size)?;
        let (rows, columns) = (height / side, width / side);
        Ok(MediaLayout {
            pieces: vec![MediaPiece::Rows(MediaRows {
                count: rows * columns,
                attention: AttentionKind::Causal,
                positions: MediaPositions::Grid { rows, columns },
            })],
        })
    }

    fn encode(&self, image: &Image, options: &ImageOptions) -> Result<EncodedMedia> {
        self.tower.encode(self.preprocessing(options).patches(image)?)
    }
}
