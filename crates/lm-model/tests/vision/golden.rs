//! Results of transformers for the folders of `testdata/vision`.

use std::path::PathBuf;

use lm_media::Picture;
use lm_model::{ALL_VISION_FAMILIES, TokenId};
use serde::Deserialize;

use crate::golden_folder::GoldenFolder;

/// Results of the reference for one folder of `testdata/vision`.
pub struct Golden {
    pub path: PathBuf,
    pub json: GoldenJson,
    pub pictures: Vec<Picture>,
    pub folder: GoldenFolder,
}

#[derive(Deserialize)]
pub struct GoldenJson {
    /// Relative to the largest value of a tensor.
    pub tolerance: f32,
    /// With a placeholder for each picture.
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
            pictures: folder.pictures("pictures."),
            folder,
        }
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
