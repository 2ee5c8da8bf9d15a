//! Loading of a model from a path or a name, with a progress bar.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm_conversation::Conversation;
use lm_model::{LoadOptions, LoadProgress, LoadedModel, ModelFolder};
use lm_session::{Engine, WeightChoice};
use lm_template::{GenerationPrompt, Polyfill};

pub use crate::args::adapter;
use crate::args::{LoadArgs, RunArgs};
use crate::locate::{Located, locate};
use crate::memory::Memory;
use crate::unusable;

/// Opens the model at a path or of a name, or the embedded one.
pub fn folder(path: Option<&Path>) -> Result<ModelFolder> {
    let Some(path) = path else {
        return Ok(ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES));
    };
    let Located { path, name } = locate(path)?;
    unusable::check(&path)?;
    let folder = ModelFolder::open(path)?;
    Ok(match name {
        Some(name) => folder.with_name(name),
        None => folder,
    })
}

/// Creates an engine on the model at `path`, or on the embedded one. Unspecified values, including the format of the weights, are
/// chosen to fit the memory.
pub fn engine(path: Option<&Path>, run: &RunArgs) -> Result<Engine> {
    fitting_engine(path, run, WeightChoice::Auto)
}

/// [`engine`] with weights in the given format, or as stored: for comparisons with another model.
pub fn exact_engine(path: Option<&Path>, run: &RunArgs) -> Result<Engine> {
    fitting_engine(path, run, WeightChoice::AsStored)
}

fn fitting_engine(path: Option<&Path>, run: &RunArgs, weights: WeightChoice) -> Result<Engine> {
    let folder = folder(path)?;
    if let Some(context) = run.context {
        let limit = folder.config()?.max_position_embeddings;
        if context.get() > limit {
            bail!("--context {context}: this model supports at most {limit}");
        }
    }
    let (mut options, mut settings) = (run.load.options()?, run.engine_settings());
    if let Some(memory) = Memory::of(path, &run.load) {
        let plan = memory.plan(&folder, run, weights)?;
        (options, settings) = (plan.load_options(options), plan.engine_settings(settings));
    }
    Ok(Engine::new(load_folder(&folder, &options)?, settings)?)
}

/// Loads the model at `path`, or the embedded one, with these options, if it fits the memory.
pub fn load(path: Option<&Path>, options: &LoadOptions, args: &LoadArgs) -> Result<LoadedModel> {
    let folder = folder(path)?;
    if let Some(memory) = Memory::of(path, args) {
        memory.check(&folder, options)?;
    }
    load_folder(&folder, options)
}

fn load_folder(folder: &ModelFolder, options: &LoadOptions) -> Result<LoadedModel> {
    let bar = progress_bar("loading");
    let mut show = |progress: LoadProgress| show_progress(&bar, progress);
    let loaded = folder.load(options, &mut show);
    bar.finish_and_clear();
    loaded.context("the model cannot be loaded")
}

/// Returns a note if tools were declared and the model's chat template has no place for them.
pub fn tools_note(conversation: &Conversation) -> Option<String> {
    if conversation.tools().is_empty() {
        return None;
    }
    let prompt = conversation.render("", GenerationPrompt::Add).ok()?;
    prompt.polyfills.contains(&Polyfill::ToolsInSystemText).then(|| {
        "note: the model's chat template takes no tools: they are described in the system prompt, and the model may not know how to \
         call them"
            .to_owned()
    })
}

/// Updates a progress bar.
pub fn show_progress(bar: &ProgressBar, progress: LoadProgress) {
    bar.set_length(progress.total_bytes);
    bar.set_position(progress.done_bytes);
}

/// Creates a progress bar on standard error, hidden if that is no terminal.
pub fn progress_bar(what: &'static str) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}",
    );
    bar.with_message(what).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
