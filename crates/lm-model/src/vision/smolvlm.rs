//! SmolVLM, SmolVLM2 and Idefics3: SigLIP over square tiles, squares of patches joined to tokens, one
//! projection. Source: SmolVLM (arXiv 2504.05299); `modeling_smolvlm.py`, `processing_smolvlm.py` of
//! transformers 5.23.0.

use std::sync::Arc;

use lm_formats::Result as FormatResult;
use lm_media::families::SmolVlm as Preprocessing;
use lm_media::{Image, ImageSize, Normalization, Patches};
use serde::Deserialize;
use serde_json::json;

use super::siglip::{SIGLIP_KEYS, SIGLIP_LAYERS, Siglip, SiglipSpec};
use super::{VisionFamily, concatenated, joined};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::config::invalid;
use crate::encoders::blocks::{Bias, Linear, TensorReader, turn};
use crate::encoders::encoded;
use crate::encoders::settings::{EncoderSettings, check_size};
use crate::error::Result;
use crate::gguf::{Clip, GgufProjector, PatchOrder, ProjectorConfig, TensorList};
use crate::media::{ImageOptions, MediaLayout, MediaPiece, MediaRows, VisionEncoder};

pub(super) const FAMILY: VisionFamily = VisionFamily {
    model_types: &["smolvlm", "idefics3"],
    goldens: &["smolvlm-tiny", "idefics3-tiny-bf16"],
    prefixes: &["model.connector.", "model.vision_model."],
    first_weights: &["model.vision_model.embeddings.patch_embedding.weight"],
    gguf: Some(&GGUF),
    load,
};

const GGUF: GgufProjector = GgufProjector {
    projector_type: "idefics3",
    text_models: &["llama"],
    keys: SIGLIP_KEYS,
    harmless: &[],
    activation: Some("hidden_act"),
    read: read_gguf,
    tensors: &[
        ("mm.model.fc", "model.connector.modality_projection.proj"),
        ("v.patch_embd", "model.vision_model.embeddings.patch_embedding"),
        ("v.position_embd", "model.vision_model.embeddings.position_embedding"),
        ("v.post_ln", "model.vision_model.post_layernorm"),
    ],
    lists: &[TensorList { model: "model.vision_model.encoder.layers.", ..SIGLIP_LAYERS }],
    values: &[],
    patches: ("model.vision_model.embeddings.patch_embedding.weight", PatchOrder::Same),
};

/// Tiles are as large as the tower's images, in files and in published models.
fn read_gguf(clip: &Clip<'_>, config: &mut ProjectorConfig) -> FormatResult<()> {
    let scale = clip.size("projector.scale_factor")?.unwrap_or(2);
    config.outer.insert("scale_factor".into(), scale.into());
    let tile = clip.required_size("image_size")?;
    let longest = clip.size("preproc_image_size")?.unwrap_or(tile);
    config.preprocessor.insert("size".into(), json!({"longest_edge": longest}));
    config.preprocessor.insert("max_image_size".into(), json!({"longest_edge": tile}));
    Ok(())
}

/// Values of `SmolVLMVisionConfig` for keys that files omit.
const DEFAULTS: &str = r#"{
    "hidden_size": 1152, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 16, "num_channels": 3,
    "image_size": 224, "patch_size": 32, "layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh"
}"#;

/// Values of `SmolVLMImageProcessorPil` for keys that files omit.
const PREPROCESSOR_DEFAULTS: &str = r#"{
    "size": {"longest_edge": 1456}, "max_image_size": {"longest_edge": 364}, "do_image_splitting": true
}"#;

/// Token around the views of an image.
const AROUND: &str = "<fake_token_around_image>";

/// SmolVLM's images.
struct SmolVlm {
    preprocessing: Preprocessing,
    tower: Siglip,
    /// Side of the square of positions.
    position_side: usize,
    projection: Linear,
}

#[derive(Deserialize)]
struct Keys {
    image_size: usize,
}

#[derive(Deserialize)]
struct OuterKeys {
    scale_factor: usize,
}

#[derive(Deserialize)]
struct PreprocessorKeys {
    size: Edge,
    max_image_size: Edge,
    do_image_splitting: bool,
}

#[derive(Deserialize)]
struct Edge {
    longest_edge: usize,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn VisionEncoder>> {
    let Keys { image_size } = settings.encoder(DEFAULTS)?;
    check_size("vision_config.image_size", image_size, 1..=4096)?;
    let spec = SiglipSpec::read(settings, DEFAULTS)?;
    let position_side = image_size / spec.sizes.patch;
    if position_side == 0 {
        let expected = format!("at least patch_size = {}", spec.sizes.patch);
        return Err(invalid("vision_config.image_size", image_size, expected).into());
    }
    let OuterKeys { scale_factor: scale } = settings.outer(r#"{"scale_factor": 2}"#)?;
    if !(1..=64).contains(&scale) {
        return Err(invalid("scale_factor", scale, "1 to 64").into());
    }
    let preprocessing = preprocessing(settings, spec.sizes.patch, scale)?;
    let tower = Siglip::load(tensors, "model.vision_model.", &spec, position_side.pow(2))?;
    let widths = [spec.sizes.hidden * scale * scale, settings.text_width];
    let projection = Linear::load(tensors, "model.connector.modality_projection.proj", widths, Bias::Absent)?;
    Ok(Arc::new(SmolVlm { preprocessing, tower, position_side, projection }))
}

fn preprocessing(settings: &EncoderSettings, patch: usize, scale: usize) -> FormatResult<Preprocessing> {
    let keys: PreprocessorKeys = settings.preprocessor(PREPROCESSOR_DEFAULTS)?;
    settings.expect("resample", 1)?;
    settings.expect("do_resize", true)?;
    Ok(Preprocessing {
        longest_edge: keys.size.longest_edge,
        tile: keys.max_image_size.longest_edge,
        patch,
        scale,
        splitting: keys.do_image_splitting,
        normalization: settings.normalization(Normalization::HALF)?,
    })
}

impl SmolVlm {
    /// Rows of the position table for a view of `rows` × `columns` patches: the table's square is stretched
    /// over it.
    ///
    /// The reference computes these in floats, whose rounding moves some patches by one row or column where a
    /// side is not a power of two, depending on the processor. The sides of published models (26, 27, 32) are
    /// not affected.
    fn position_ids(&self, rows: usize, columns: usize) -> Vec<u32> {
        let side = self.position_side;
        let ids = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        ids.map(|(row, column)| (row * side / rows * side + column * side / columns) as u32).collect()
    }

    fn encode_view(&self, patches: Patches) -> Result<EncodedMedia> {
        let (rows, columns) = (patches.rows, patches.columns);
        let positions = self.tower.positions(&self.position_ids(rows, columns));
        let x = self.tower.forward(patches, positions);
        let _turn = turn(self.tower.device());
        encoded(self.projection.forward(joined(x, rows, columns, self.preprocessing.scale)))
    }
}

impl VisionEncoder for SmolVlm {
    fn placeholder(&self) -> &str {
        "<image>"
    }

    fn token(&self) -> &str {
        "<image>"
    }

    fn layout(&self, size: ImageSize, _: &ImageOptions) -> Result<MediaLayout> {
        let grid = self.preprocessing.grid(size)?;
        let view = MediaRows::sequential(self.preprocessing.view_tokens()?, AttentionKind::Causal);
        let view = MediaPiece::Rows(view);
        let mut pieces = Vec::new();
        for row in 1..=grid.rows {
            for column in 1..=grid.columns {
                let end_of_row = if row > 1 && column == 1 { "\n" } else { "" };
                pieces.push(MediaPiece::Text(format!("{end_of_row}{AROUND}<row_{row}_col_{column}>")));
                pieces.push(view.clone());
            }
        }
        let after_tiles = if grid.rows > 0 { "\n\n" } else { "" };
        pieces.push(MediaPiece::Text(format!("{after_tiles}{AROUND}<global-img>")));
        pieces.extend([view, MediaPiece::Text(AROUND.into())]);
        Ok(MediaLayout { pieces })
    }

    fn encode(&self, image: &Image, _: &ImageOptions) -> Result<EncodedMedia> {
        let views = self.preprocessing.patches(image)?;
        concatenated(views.into_iter().map(|patches| self.encode_view(patches)))
    }
}
