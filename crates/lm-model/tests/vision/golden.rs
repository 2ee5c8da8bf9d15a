//! Results of transformers for the folders of `testdata/vision`.

use std::path::{Path, PathBuf};

use lm_media::Image;
use lm_model::{ALL_VISION_FAMILIES, ImageOptions, TokenId};
use serde::Deserialize;

use crate::golden_folder::GoldenFolder;

/// Results of the reference for one folder of `testdata/vision`.
pub struct Golden {
    pub path: PathBuf,
    pub json: GoldenJson,
    pub images: Vec<Image>,
    pub folder: GoldenFolder,
    /// Options of the images.
    pub options: ImageOptions,
}

#[derive(Deserialize)]
pub struct GoldenJson {
    /// Relative to the largest value of a tensor.
    pub tolerance: f32,
    /// With a placeholder for each image.
    pub prompt: String,
    pub ids: Vec<TokenId>,
    pub greedy: Vec<TokenId>,
    /// M-RoPE positions of the ids: three lists.
    pub positions: Option<Vec<Vec<u32>>>,
}

impl Golden {
    pub fn read(name: &str) -> Self {
        let folder = GoldenFolder::read("vision", name);
        Self {
            path: folder.path.clone(),
            json: folder.json(),
            images: folder.images("pictures."),
            folder,
            options: ImageOptions::default(),
        }
    }

    /// Results for the two GGUF files of a folder in `testdata/vision/mmproj`: those beside them, or those of
    /// the checkpoint of this name.
    pub fn of_mmproj(name: &str) -> Self {
        let path = format!("mmproj/{name}");
        let own = Self::folder(&path).join("golden.json").exists();
        let mut golden = Self::read(if own { &path } else { name });
        golden.path = Self::folder(&path);
        golden
    }

    /// Drops the logits of rows without a token, which the converter omits from Gemma's files.
    pub fn narrow_logits(&mut self, width: usize) {
        let logits = self.folder.tensors.get_mut("logits").unwrap();
        let all = logits.len() / self.json.ids.len();
        *logits = logits.chunks_exact(all).flat_map(|row| &row[..width]).copied().collect();
    }

    pub fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision").join(name)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        ALL_VISION_FAMILIES.iter().flat_map(|family| family.goldens).map(|name| Self::read(name))
    }

    pub fn name(&self) -> String {
        self.folder.name()
    }

    /// Asserts that values are those of a tensor, within the tolerance.
    pub fn assert_close(&self, tensor: &str, values: &[f32]) {
        self.folder.assert_close(tensor, values, self.json.tolerance);
    }
}
