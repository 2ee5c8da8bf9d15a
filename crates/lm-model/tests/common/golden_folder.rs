//! Folders of `testdata/vision` and `testdata/audio`: a checkpoint with results of transformers.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lm_media::{Image, ImageSize};
use lm_model::{Error, FileBytes, LoadOptions, LoadedModel, ModelFolder};
use safetensors::SafeTensors;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A folder, with `golden.safetensors` read.
pub struct GoldenFolder {
    pub path: PathBuf,
    pub tensors: HashMap<String, Vec<f32>>,
    images: HashMap<String, Image>,
}

impl GoldenFolder {
    /// Reads `testdata/<kind>/<name>`.
    pub fn read(kind: &str, name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(kind).join(name);
        let bytes = std::fs::read(path.join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (mut tensors, mut images) = (HashMap::new(), HashMap::new());
        for (name, view) in file.iter() {
            if let Some(name) = name.strip_suffix(".rgb") {
                let size = ImageSize::new(view.shape()[1], view.shape()[0]);
                images.insert(name.to_owned(), Image::from_rgb(size, view.data().to_vec()).unwrap());
            } else {
                let floats = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                tensors.insert(name.to_owned(), floats.collect());
            }
        }
        Self { path, tensors, images }
    }

    /// `golden.json`.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&std::fs::read(self.path.join("golden.json")).unwrap()).unwrap()
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// The images `<prefix>0`, `<prefix>1`, and so on.
    pub fn images(&self, prefix: &str) -> Vec<Image> {
        (0..).map_while(|index| self.images.get(&format!("{prefix}{index}")).cloned()).collect()
    }

    /// Asserts that values are those of a tensor, within a tolerance relative to its largest value; prints
    /// the difference.
    pub fn assert_close(&self, tensor: &str, values: &[f32], tolerance: f32) {
        let expected = &self.tensors[tensor];
        assert_eq!(values.len(), expected.len(), "{} {tensor}", self.name());
        let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let differences = values.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let difference = differences.fold(0.0, |most: f32, d| if d <= most { most } else { d }) / largest;
        let stage = tensor.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit());
        let stage = stage.rsplit('.').next().unwrap_or(stage);
        self.print_stage(stage, difference);
        assert!(difference <= tolerance, "{} {tensor} is off by {difference:e}", self.name());
    }

    /// Prints a case for the table of `cargo xtask golden --check --media`.
    pub fn print_stage(&self, stage: &str, difference: f32) {
        println!("stage: {} | {stage} | 1 | {difference:e}", self.name());
    }

    /// The files of the model.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap());
        let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
        let of_model = named.filter(|(name, _)| !name.starts_with("golden"));
        of_model.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
    }

    /// A folder of files in memory.
    pub fn in_memory(&self, files: Vec<(String, Vec<u8>)>) -> ModelFolder {
        let files = files.into_iter().map(|(name, bytes)| (name, FileBytes::Owned(bytes.into())));
        ModelFolder::in_memory(&self.name(), files.collect()).unwrap()
    }

    /// The folder's files in memory, with a value in a JSON file replaced.
    pub fn with_setting(&self, file: &str, pointer: &str, value: &Value) -> ModelFolder {
        let mut files = self.files();
        let (_, bytes) = files.iter_mut().find(|(name, _)| name == file).unwrap();
        let mut json: Value = serde_json::from_slice(bytes).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[key] = value.clone();
        *bytes = json.to_string().into_bytes();
        self.in_memory(files)
    }
}

/// Loads with default options.
pub fn loaded(folder: &ModelFolder) -> Result<LoadedModel, Error> {
    folder.load(&LoadOptions::default(), &mut |_| {})
}
