//! Ours against transformers: the tiny checkpoints of `testdata/models` and the pocket model, on every compiled device.

mod gguf;
mod pocket;
mod run;
mod tiny;

use std::path::{Path, PathBuf};

use lm_model::{Device, KvDtype, LoadOptions, LoadedModel, ModelFolder};

/// The workspace root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The compiled devices; one that this machine lacks (no GPU adapter) is left out with a line that says so.
fn devices() -> Vec<Device> {
    let usable = |device: &Device| match device.burn() {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: {device}: {error}");
            false
        }
    };
    Device::available().iter().copied().filter(usable).collect()
}

/// Loads a folder with the weights as stored and an f32 cache.
fn load(path: &Path, device: Device) -> anyhow::Result<LoadedModel> {
    let options = LoadOptions { device, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    Ok(ModelFolder::open(path)?.load(&options, &mut |_| {})?)
}
