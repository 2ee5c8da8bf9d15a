//! Comparison with transformers: the tiny checkpoints of `testdata/models` and the pocket model, on every
//! compiled device.

mod gguf;
mod gguf_conversions;
mod gguf_writing;
mod pocket;
mod run;
mod tiny;

use std::path::{Path, PathBuf};

use lm_model::{Device, KvDtype, LoadOptions, LoadedModel, ModelFolder, WeightFormat};

/// The workspace root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Loads a folder with the weights as stored and an f32 cache. Weights that are stored quantised become f32,
/// as in the reference: kernels for quants round the other factor too.
fn load(path: &Path, device: Device) -> anyhow::Result<LoadedModel> {
    let folder = ModelFolder::open(path)?;
    let quantization = folder.config()?.quantization_config.map(|_| WeightFormat::F32);
    let options = LoadOptions { device, quantization, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    Ok(folder.load(&options, &mut |_| {})?)
}
