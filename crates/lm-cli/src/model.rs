//! Loading of a model from a path or a name, with a progress bar.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lm_conversation::Conversation;
use lm_model::{InputRecorder, LoadOptions, LoadedModel, ModelFolder};
use lm_session::{DraftModel, Engine, ModelOutput, WeightChoice};
use lm_template::{GenerationPrompt, Polyfill};

pub use crate::args::adapter;
use crate::args::{LoadArgs, RunArgs, check_context, usage};
pub use crate::locate::stored;
use crate::locate::{Located, locate};
use crate::memory::Memory;
use crate::path_check;
use crate::progress::{progress_bar, show_on};
use crate::requantization;

/// Opens the model at a path or of a name, or the embedded one.
pub fn folder(path: Option<&Path>) -> Result<ModelFolder> {
    folder_with(path, None)
}

/// [`folder`], with the `mmproj` file of a GGUF model.
pub fn folder_with(path: Option<&Path>, mmproj: Option<&Path>) -> Result<ModelFolder> {
    let Some(path) = stored(path) else {
        if mmproj.is_some() {
            return Err(usage("--mmproj: the embedded model reads no images; name a GGUF model"));
        }
        return Ok(ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES));
    };
    let Located { path, name, projector, .. } = locate(path)?;
    path_check::check(&path)?;
    let folder = match (mmproj, projector) {
        (Some(mmproj), _) => ModelFolder::open_with_projector(path, mmproj).context("--mmproj")?,
        (None, Some(stored)) => ModelFolder::open(path)?.with_stored_projector(stored)?,
        (None, None) => ModelFolder::open(path)?,
    };
    Ok(match name {
        Some(name) => folder.with_name(name),
        None => folder,
    })
}

/// Returns the bytes of a model's files, as `lm list` shows them: of a stored model those that belong to it,
/// of a folder all at its top, of a GGUF file the `parts` beside it, by name.
pub fn file_bytes<'a>(path: Option<&Path>, parts: impl Iterator<Item = &'a str>) -> Result<u64> {
    let Some(path) = stored(path) else {
        return Ok(lm_pocket::FILES.iter().map(|(_, bytes)| bytes.len() as u64).sum());
    };
    let Located { path, bytes, .. } = locate(path)?;
    if let Some(bytes) = bytes {
        return Ok(bytes);
    }
    let files: Vec<PathBuf> = match path.is_dir() {
        true => path.read_dir()?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?,
        false => parts.map(|part| path.with_file_name(part)).collect(),
    };
    Ok(files
        .iter()
        .filter_map(|file| file.metadata().ok())
        .filter(Metadata::is_file)
        .map(|file| file.len())
        .sum())
}

/// Creates an engine on the model at `path`, or on the embedded one. Unspecified values, including the format
/// of the weights, are chosen to fit the memory.
pub fn engine(path: Option<&Path>, run: &RunArgs) -> Result<Engine> {
    fitting_engine(path, run, WeightChoice::Auto)
}

/// [`engine`] with weights in the given format, or as stored: for comparisons with another model.
pub fn exact_engine(path: Option<&Path>, run: &RunArgs) -> Result<Engine> {
    fitting_engine(path, run, WeightChoice::AsStored)
}

fn fitting_engine(path: Option<&Path>, run: &RunArgs, weights: WeightChoice) -> Result<Engine> {
    let folder = folder_with(path, run.load.mmproj.as_deref())?;
    if let Some(context) = run.context {
        check_context(context, folder.config()?.max_position_embeddings)?;
    }
    let path = stored(path);
    note_on_pack_cache(path, &run.load);
    let (mut options, mut settings) = (run.load.options()?, run.engine_settings());
    if let Some(memory) = Memory::of(path, &run.load) {
        let plan = memory.plan(&folder, run, weights)?;
        (options, settings) = (plan.load_options(options), plan.engine_settings(settings));
    }
    requantization::warn(&folder, path, options.quantization)?;
    let draft_options = LoadOptions { adapters: Vec::new(), ..options.clone() };
    // A file that exists is an error before the model is loaded.
    let record = run.record.as_ref().map(|path| {
        let file = File::options().append(true).create_new(true).open(path);
        file.with_context(|| format!("--record {}", path.display()))
    });
    let record = record.transpose()?;
    if let Some(draft) = &run.draft_model {
        let draft = self::folder(Some(draft)).and_then(|draft| load_folder(&draft, &draft_options));
        settings.draft_model = Some(DraftModel::new(draft.context("--draft-model")?));
    }
    let engine = Engine::new(load_folder(&folder, &options)?, settings)?;
    record.map(|file| engine.record(file)).transpose()?;
    Ok(engine)
}

/// Prints a note if `--pack-cache` is given for the embedded model, which has no folder that identifies it.
fn note_on_pack_cache(path: Option<&Path>, args: &LoadArgs) {
    if path.is_none() && args.pack_cache.is_some() {
        eprintln!(
            "note: --pack-cache: nothing is cached for the embedded model; it is quantised at every start"
        );
    }
}

/// Loads the model at `path`, or the embedded one, with these options, if it fits the memory.
pub fn load(path: Option<&Path>, options: &LoadOptions, args: &LoadArgs) -> Result<LoadedModel> {
    let (folder, path) = (folder_with(path, args.mmproj.as_deref())?, stored(path));
    note_on_pack_cache(path, args);
    if let Some(memory) = Memory::of(path, args) {
        memory.check(&folder, options)?;
    }
    load_folder(&folder, options)
}

/// [`load`], with a warning if the weights are quantised again to few bits.
pub fn load_with_warning(path: Option<&Path>, options: &LoadOptions, args: &LoadArgs) -> Result<LoadedModel> {
    if options.quantization.is_some() {
        requantization::warn(
            &folder_with(path, args.mmproj.as_deref())?,
            stored(path),
            options.quantization,
        )?;
    }
    load(path, options, args)
}

/// [`load`], with the inputs of the model's linear layers recorded.
pub fn load_recording(
    path: Option<&Path>,
    options: &LoadOptions,
    args: &LoadArgs,
) -> Result<(LoadedModel, InputRecorder)> {
    let folder = folder_with(path, args.mmproj.as_deref())?;
    if let Some(memory) = Memory::of(stored(path), args) {
        memory.check(&folder, options)?;
    }
    let bar = progress_bar("loading");
    let loaded = folder.load_recording(options, &mut show_on(&bar));
    bar.finish_and_clear();
    loaded.context("the model cannot be loaded")
}

fn load_folder(folder: &ModelFolder, options: &LoadOptions) -> Result<LoadedModel> {
    let bar = progress_bar("loading");
    let loaded = folder.load(options, &mut show_on(&bar));
    bar.finish_and_clear();
    loaded.context("the model cannot be loaded")
}

/// Checks that a model generates text and has a chat template, before it is loaded.
///
/// # Errors
/// When it does not.
pub fn check_chat_template(folder: &ModelFolder) -> Result<()> {
    let output = folder.output()?;
    if output != ModelOutput::Tokens {
        let architecture = folder.config()?.model_type;
        return Err(lm_session::Error::NoGeneration { architecture, output }.into());
    }
    match folder.chat_template()? {
        Some(files) if files.iter().next().is_some() => Ok(()),
        _ => Err(lm_conversation::Error::NoChatTemplate { model: folder.name().to_owned() }.into()),
    }
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
