//! Downloads of models that clients of a server ask for.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use lm_hub::{Hub, HubSettings, ModelName};
use lm_server::{DownloadProgress, ServedDownloads, ServedModel};

use super::models::Shared;
use crate::failure;

/// Downloads models into the cache of `lm pull`, one at a time, and serves them.
pub fn downloads(shared: Shared) -> ServedDownloads {
    let one_at_a_time = Mutex::new(());
    ServedDownloads::new(move |name, progress| {
        let _running = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        download(&shared, name, progress).map_err(|error| failure::message(&error))
    })
}

fn download(shared: &Shared, name: &str, progress: &mut dyn FnMut(DownloadProgress)) -> Result<ServedModel> {
    let hub = Hub::new(HubSettings::from_env()?)?;
    let pull = hub.plan(&name.parse::<ModelName>()?)?;
    hub.fetch(&pull, &mut |lm_hub::PullProgress { file, done_bytes, total_bytes }| {
        progress(DownloadProgress { file: file.to_string(), done_bytes, total_bytes });
    })?;
    let model = shared.serve(Some(Path::new(name)))?;
    Ok(if model.name() == name { model } else { model.alias(name) })
}
