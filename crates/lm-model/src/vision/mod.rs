//! Vision parts of models: towers and projectors, one file and one row a family.

mod blocks;
mod gemma3;
mod gemma4;
mod lfm2_vl;
mod position_table;
mod qwen_vl;
mod settings;
mod siglip;
mod smolvlm;

use std::sync::Arc;

use burn::tensor::Tensor;
use lm_formats::ModelFiles;
use lm_kernels::Device;

use self::blocks::TowerTensors;
use self::settings::VisionSettings;
use crate::batch::{Embeddings, EncodedMedia};
use crate::checkpoint::Checkpoint;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::loader::LoadProgress;
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
#[derive(Debug)]
pub struct VisionFamily {
    /// `model_type` values of the outer config.json.
    pub model_types: &'static [&'static str],
    /// Folders under `testdata/vision/`, each with a checkpoint and results of the reference implementation.
    pub goldens: &'static [&'static str],
    /// Prefixes of the names of its tensors.
    pub(crate) prefixes: &'static [&'static str],
    /// Names of the patch embedding, as checkpoints spell it: a checkpoint without it has no tower.
    pub(crate) patch_embeddings: &'static [&'static str],
    /// Loads tower and projector.
    pub(crate) load: fn(&VisionSettings, &mut TowerTensors<'_>) -> Result<Arc<dyn VisionEncoder>>,
}

/// Vision part of a model folder, found and not yet loaded.
pub(crate) struct VisionPart {
    family: &'static VisionFamily,
    settings: VisionSettings,
    /// Bytes of its tensors in the files.
    pub(crate) stored_bytes: u64,
}

impl VisionPart {
    /// Finds the vision part of a model. There is none if the family is unknown, or the files have no tower: the model then takes text only,
    /// as its log says.
    pub(crate) fn find(
        files: &dyn ModelFiles,
        config: &ModelConfig,
        checkpoint: &Checkpoint,
    ) -> Result<Option<Self>> {
        let Some(settings) = VisionSettings::read(files, config)? else { return Ok(None) };
        let model_type = &*settings.model_type;
        let Some(family) = ALL_VISION_FAMILIES.iter().find(|family| family.model_types.contains(&model_type))
        else {
            tracing::info!(model_type, "the vision part is of an unknown family: the model takes text only");
            return Ok(None);
        };
        if !family.patch_embeddings.iter().any(|name| checkpoint.contains(name)) {
            tracing::info!(model_type, "the files have no vision tower: the model takes text only");
            return Ok(None);
        }
        let settings = settings.with_preprocessor(files)?;
        let stored_bytes = checkpoint.bytes_under(family.prefixes);
        Ok(Some(Self { family, settings, stored_bytes }))
    }

    /// Prefixes of the names of its tensors.
    pub(crate) fn prefixes(&self) -> &'static [&'static str] {
        self.family.prefixes
    }

    /// Loads tower and projector after `done_bytes` of other tensors; returns them with their size in memory in bytes.
    pub(crate) fn load(
        &self,
        checkpoint: &Checkpoint,
        device: Device,
        done_bytes: u64,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<(Arc<dyn VisionEncoder>, u64)> {
        let bytes = [done_bytes, done_bytes + self.stored_bytes];
        let mut tensors = TowerTensors::new(checkpoint, device, bytes, progress)?;
        let encoder = (self.family.load)(&self.settings, &mut tensors)?;
        Ok((encoder, tensors.weight_bytes))
    }
}

/// Copies the rows of an encoded picture, `[rows, hidden]`, to the host.
fn encoded(rows: Tensor<2>) -> Result<EncodedMedia> {
    let [_, hidden_size] = rows.dims();
    let rows = Embeddings { values: lm_kernels::to_host(rows)?, hidden_size };
    Ok(EncodedMedia { rows, deep: Vec::new() })
}

/// The rows of several views, one view after another.
fn concatenated(views: Vec<EncodedMedia>) -> EncodedMedia {
    let hidden_size = views.first().map_or(0, |view| view.rows.hidden_size);
    let values = views.into_iter().flat_map(|view| view.rows.values).collect();
    EncodedMedia { rows: Embeddings { values, hidden_size }, deep: Vec::new() }
}

/// Averages each square of `kernel`² patches: `[rows * columns, hidden]` to `[rows * columns / kernel², hidden]`.
///
/// # Panics
/// When a side is no multiple of `kernel`; the preprocessing has checked it.
fn pooled(x: Tensor<2>, rows: usize, columns: usize, kernel: usize) -> Tensor<2> {
    let ([_, hidden], height, width) = (x.dims(), rows / kernel, columns / kernel);
    let squares = x.reshape([height, kernel, width, kernel, hidden]);
    squares.mean_dim(3).mean_dim(1).reshape([height * width, hidden])
}

/// Joins each square of `factor`² patches to one row: `[rows * columns, hidden]` to `[rows * columns / factor², factor² * hidden]`, the patches of
/// a square row by row.
///
/// # Panics
/// When a side is no multiple of `factor`; the preprocessing has checked it.
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
}
