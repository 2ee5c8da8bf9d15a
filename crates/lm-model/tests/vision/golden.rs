//! Results of transformers for the folders of `testdata/vision`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lm_media::{Picture, PictureSize};
use lm_model::{ALL_VISION_FAMILIES, TokenId};
use safetensors::SafeTensors;
use serde::Deserialize;

/// Results of the reference for one folder of `testdata/vision`.
pub struct Golden {
    pub path: PathBuf,
    pub json: GoldenJson,
    pub tensors: HashMap<String, Vec<f32>>,
    pub pictures: Vec<Picture>,
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision").join(name);
        let json = serde_json::from_slice(&std::fs::read(path.join("golden.json")).unwrap()).unwrap();
        let bytes = std::fs::read(path.join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (mut tensors, mut pictures) = (HashMap::new(), Vec::new());
        for (name, view) in file.iter() {
            if !name.ends_with(".rgb") {
                let floats = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                tensors.insert(name.to_owned(), floats.collect());
            }
        }
        while let Ok(rgb) = file.tensor(&format!("pictures.{}.rgb", pictures.len())) {
            let size = PictureSize::new(rgb.shape()[1], rgb.shape()[0]);
            pictures.push(Picture::from_rgb(size, rgb.data().to_vec()).unwrap());
        }
        Self { path, json, tensors, pictures }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        ALL_VISION_FAMILIES.iter().flat_map(|family| family.goldens).map(|name| Self::read(name))
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// Asserts that values are those of a tensor, within the tolerance; prints the largest relative difference.
    pub fn assert_close(&self, tensor: &str, values: &[f32]) {
        let expected = &self.tensors[tensor];
        assert_eq!(values.len(), expected.len(), "{} {tensor}", self.name());
        let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let differences = values.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let difference = differences.fold(0.0, |most: f32, d| if d <= most { most } else { d }) / largest;
        println!("{} {tensor}: {difference:.1e}", self.name());
        assert!(difference <= self.json.tolerance, "{} {tensor} is off by {difference:e}", self.name());
    }
}
