//! From a path or a name to an engine, with a progress bar on the way.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm_model::{AdapterId, LoadOptions, LoadProgress, LoadedModel, ModelFolder, ModelInfo};
use lm_session::Engine;

use crate::args::RunArgs;
use crate::locate::{Located, locate};

/// The model at a path or of a name, or the embedded one.
pub fn folder(path: Option<&Path>) -> Result<ModelFolder> {
    let Some(path) = path else {
        return Ok(ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES));
    };
    let Located { path, name } = locate(path)?;
    let folder = ModelFolder::open(path)?;
    Ok(match name {
        Some(name) => folder.with_name(name),
        None => folder,
    })
}

/// An engine on the model at `path`, or on the embedded one.
pub fn engine(path: Option<&Path>, run: &RunArgs) -> Result<Engine> {
    Ok(Engine::new(load(path, &run.load.options()?)?, run.engine_settings())?)
}

/// The model at `path`, or the embedded one, loaded.
pub fn load(path: Option<&Path>, options: &LoadOptions) -> Result<LoadedModel> {
    let folder = folder(path)?;
    let bar = progress_bar("loading");
    let mut show = |progress: LoadProgress| show_progress(&bar, progress);
    let loaded = folder.load(options, &mut show);
    bar.finish_and_clear();
    loaded.context("the model cannot be loaded")
}

/// The adapter of `--lora`, if one was loaded.
pub fn adapter(model: &ModelInfo) -> Option<AdapterId> {
    (!model.adapters.is_empty()).then_some(AdapterId(0))
}

/// Brings a bar up to date.
pub fn show_progress(bar: &ProgressBar, progress: LoadProgress) {
    bar.set_length(progress.total_bytes);
    bar.set_position(progress.done_bytes);
}

/// A bar on standard error, where that is a terminal.
pub fn progress_bar(what: &'static str) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    bar.with_message(what).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
