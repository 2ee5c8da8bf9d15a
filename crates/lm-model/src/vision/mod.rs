//! Vision parts of models: towers and projectors, one file and one row per family.

mod gemma3;
mod gemma4;
mod lfm2_vl;
mod position_table;
mod qwen_vl;
mod settings;
mod siglip;
mod smolvlm;

use burn::tensor::Tensor;

use crate::batch::{Embeddings, EncodedMedia};
use crate::encoders::settings::SettingsKeys;
use crate::encoders::{EncoderFamily, Modality};
use crate::error::Result;
use crate::media::VisionEncoder;

/// Every vision family, in alphabetical order.
pub const ALL_VISION_FAMILIES: &[&VisionFamily] = &[
    &gemma3::FAMILY,
    &gemma4::FAMILY,
    &lfm2_vl::FAMILY,
    &qwen_vl::QWEN2_5_VL,
    &qwen_vl::QWEN2_VL,
    &qwen_vl::QWEN3_5_VL,
    &qwen_vl::QWEN3_VL,
    &smolvlm::FAMILY,
];

/// Vision part of a model family: preprocessing, tower and projector.
pub type VisionFamily = EncoderFamily<dyn VisionEncoder>;

/// Images.
pub(crate) const VISION: Modality<dyn VisionEncoder> = Modality {
    name: "vision",
    keys: SettingsKeys { config: &["vision_config"], processor: &["image_processor"] },
    families: ALL_VISION_FAMILIES,
};

/// The rows of several views, one view after another.
fn concatenated(views: impl Iterator<Item = Result<EncodedMedia>>) -> Result<EncodedMedia> {
    let mut rows = Embeddings::default();
    for view in views {
        let Embeddings { values, hidden_size } = view?.rows;
        rows.values.extend(values);
        rows.hidden_size = hidden_size;
    }
    Ok(EncodedMedia { rows, deep: Vec::new() })
}

/// Averages each square of `kernel`² patches: `[rows * columns, hidden]` to
/// `[rows * columns / kernel², hidden]`.
///
/// # Panics
/// When a side is not a multiple of `kernel`; the preprocessing has checked it.
fn pooled(x: Tensor<2>, rows: usize, columns: usize, kernel: usize) -> Tensor<2> {
    let ([_, hidden], height, width) = (x.dims(), rows / kernel, columns / kernel);
    let squares = x.reshape([height, kernel, width, kernel, hidden]);
    squares.mean_dim(3).mean_dim(1).reshape([height * width, hidden])
}

/// Joins each square of `factor`² patches to one row: `[rows * columns, hidden]` to
/// `[rows * columns / factor², factor² * hidden]`, the patches of a square row by row.
///
/// # Panics
/// When a side is not a multiple of `factor`; the preprocessing has checked it.
fn joined(x: Tensor<2>, rows: usize, columns: usize, factor: usize) -> Tensor<2> {
    let ([_, hidden], height, width) = (x.dims(), rows / factor, columns / factor);
    let squares = x.reshape([height, factor, width, factor, hidden]).permute([0, 2, 1, 3, 4]);
    squares.reshape([height * width, factor * factor * hidden])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_sorted_and_have_goldens() {
        let names: Vec<_> = ALL_VISION_FAMILIES.iter().map(|family| family.model_types[0]).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(ALL_VISION_FAMILIES.iter().all(|family| !family.goldens.is_empty()));
    }

    #[test]
    fn mmproj_rules_have_one_projector_and_a_reason() {
        let rows: Vec<_> = ALL_VISION_FAMILIES.iter().filter_map(|family| family.gguf).collect();
        for (index, row) in rows.iter().enumerate() {
            assert!(rows[..index].iter().all(|other| other.projector_type != row.projector_type));
            assert!(row.harmless.is_sorted_by(|a, b| a.0 < b.0), "{}", row.projector_type);
            assert!(row.harmless.iter().all(|harmless| !harmless.1.is_empty()));
        }
    }
}
