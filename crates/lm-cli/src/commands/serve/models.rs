//! Models of a server: one that is loaded at its start, or several that share the memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use lm_api::ConversationConfig;
use lm_hub::ModelStores;
use lm_model::{LoadOptions, ModelFolder};
use lm_server::ServedModel;
use lm_session::{Engine, EngineSettings, MediaKind, Models, WeightChoice, available_memory};
use lm_template::PromptTemplate;

use super::Args;
use crate::args::{CallArgs, CallTreatment, RunArgs, TemplateArgs, check_context, usage};
use crate::{failure, memory, model, requantization};

/// Models given by position or by `--model`.
#[derive(Debug, clap::Args)]
pub struct ModelPaths {
    /// Model folders, GGUF files, or names such as Qwen/Qwen3-0.6B [default: the embedded model]. Several:
    /// the first one answers requests that name none, and each is loaded when it is first used, and unloaded
    /// when another one needs its memory
    #[arg(value_name = "MODEL")]
    paths: Vec<PathBuf>,
    /// The same, by name; may be repeated
    #[arg(long = "model", short = 'm', value_name = "MODEL", conflicts_with = "paths")]
    named: Vec<PathBuf>,
    /// Serve all models of this machine, those that `lm list` shows and the embedded one; each is loaded when
    /// it is first used
    #[arg(long)]
    all: bool,
}

impl ModelPaths {
    /// The paths; none is the embedded model.
    fn get(&self) -> &[PathBuf] {
        if self.paths.is_empty() { &self.named } else { &self.paths }
    }
}

/// Returns the models that the arguments name, and what serves further ones, unless an option is for a single
/// model.
///
/// # Errors
/// When one cannot be opened, or loaded if it is the only one; when an option takes a single model.
pub fn models(args: &Args) -> Result<(Vec<ServedModel>, Result<Shared>)> {
    let run = run_args(args);
    let paths = args.models.get();
    if args.models.all {
        let shared = Shared::new(args, &run)?;
        return Ok((shared.all(paths)?, Ok(shared)));
    }
    if paths.len() > 1 || args.keep_alive.is_some() {
        if paths.is_empty() {
            return Err(usage("--keep-alive: the embedded model is not unloaded".to_owned()));
        }
        let shared = Shared::new(args, &run)?;
        let models = paths.iter().map(|path| shared.serve(Some(path)).context(path.display().to_string()));
        return Ok((models.collect::<Result<_>>()?, Ok(shared)));
    }
    let path = paths.first().map(PathBuf::as_path);
    let folder = model::folder_with(path, run.load.mmproj.as_deref())?;
    let template = args.template.of(&folder)?;
    let engine = model::engine(path, &run)?;
    let config = config(&engine, template, args.calls.of(path)?);
    let model = ServedModel::new(engine, config).gguf(folder.is_gguf());
    // The memory that the first model leaves.
    Ok((vec![model], Shared::new(args, &run)))
}

/// Options of a run, with the numbers of requests.
fn run_args(args: &Args) -> RunArgs {
    RunArgs { queue: Some(args.queue.get()), parallel: Some(args.parallel.get()), ..args.run.clone() }
}

/// Models that share the memory: each is loaded when it is first used.
#[derive(Clone)]
pub struct Shared {
    registry: Models,
    settings: EngineSettings,
    options: LoadOptions,
    run: RunArgs,
    template: TemplateArgs,
    calls: CallArgs,
}

impl Shared {
    /// Creates an empty set.
    ///
    /// # Errors
    /// When an option takes a single model, or the memory is not known.
    fn new(args: &Args, run: &RunArgs) -> Result<Self> {
        refuse_single_model_options(run)?;
        let Some(budget) = run.load.memory.or_else(available_memory) else {
            return Err(usage(
                "--memory: this system does not report its memory: give the limit of all models".to_owned(),
            ));
        };
        let keep_alive = args.keep_alive.map(|seconds| Duration::from_secs(seconds.get() as u64));
        Ok(Self {
            registry: Models::new(budget),
            settings: EngineSettings { keep_alive, ..run.engine_settings() },
            options: run.load.options()?,
            run: run.clone(),
            template: args.template.clone(),
            calls: args.calls.clone(),
        })
    }

    /// Adds a model, or the embedded one.
    ///
    /// # Errors
    /// When it cannot be opened, or does not fit the memory.
    pub fn serve(&self, path: Option<&Path>) -> Result<ServedModel> {
        let folder = model::folder(path)?;
        if let Some(context) = self.run.context {
            check_context(context, folder.config()?.max_position_embeddings)?;
        }
        requantization::warn(&folder, path, self.run.load.quantize.or(self.run.load.dtype))?;
        let (name, is_gguf) = (folder.name().to_owned(), folder.is_gguf());
        let template = self.template.of(&folder)?;
        let media = media(&folder)?;
        let request = memory::request(&self.run, WeightChoice::Auto);
        self.registry.add(&name, folder, &request, self.options.clone(), self.settings.clone())?;
        let (registry, calls) = (self.registry.clone(), self.calls.of(path)?);
        let load = move |name: &str| {
            let engine = registry.engine(name, &mut |_| {})?;
            let config = config(&engine, template.clone(), calls.clone());
            Ok((engine, config))
        };
        let model = ServedModel::on_demand(name.clone(), move || load(&name)).media(media).gguf(is_gguf);
        let bytes = model::file_bytes(path, path.iter().filter_map(|path| path.file_name()?.to_str()));
        Ok(bytes.map_or(model.clone(), |bytes| model.file_bytes(bytes)))
    }

    /// Adds the models of these paths, and then all of this machine and the embedded one; those of this
    /// machine that cannot be served are left out, with a warning.
    fn all(&self, paths: &[PathBuf]) -> Result<Vec<ServedModel>> {
        let named = paths.iter().map(|path| self.serve(Some(path)).context(path.display().to_string()));
        let mut models = named.collect::<Result<Vec<_>>>()?;
        let stored = ModelStores::from_env()?.list()?;
        let names = stored.iter().map(|model| Some(Path::new(&model.name)));
        for name in names.chain([None]) {
            match self.serve(name) {
                Ok(model) => models.push(model),
                Err(error) if is_duplicate(&error) => {}
                Err(error) => {
                    let name = name.map_or(lm_pocket::NAME.into(), Path::to_string_lossy);
                    eprintln!("warning: {name} is not served: {}", failure::message(&error));
                }
            }
        }
        Ok(models)
    }
}

/// Returns true for the error of a model that is there already.
fn is_duplicate(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(lm_session::Error::DuplicateModel { .. }))
}

/// Kinds of media that a model reads, without loading it.
fn media(folder: &ModelFolder) -> Result<Vec<MediaKind>> {
    let reads = |kind: &MediaKind| match kind {
        MediaKind::Image => folder.reads_images(),
        MediaKind::Audio => folder.reads_audio(),
    };
    let kinds = MediaKind::ALL.into_iter().map(|kind| Ok(reads(&kind)?.then_some(kind)));
    Ok(kinds.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn refuse_single_model_options(run: &RunArgs) -> Result<()> {
    let given = [
        ("--record", run.record.is_some()),
        ("--draft-model", run.draft_model.is_some()),
        ("--lora", run.load.lora.is_some()),
        ("--mmproj", run.load.mmproj.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(usage(format!("{option}: expected one model, without --keep-alive"))),
        None => Ok(()),
    }
}

/// Values of absent fields of requests.
fn config(engine: &Engine, template: Option<PromptTemplate>, calls: CallTreatment) -> ConversationConfig {
    let mut config = ConversationConfig { template, ..ConversationConfig::from_engine(engine) };
    config.session.adapter = model::adapter(engine);
    calls.apply(config)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn running_and_queued_requests_are_counted_apart() {
        let line = Line::try_parse_from(["lm", "--parallel", "3", "--queue", "5"]).expect("options");
        let settings = run_args(&line.args).engine_settings();
        assert_eq!((settings.max_running_requests, settings.max_waiting_requests), (3, 5));
    }

    #[test]
    fn modalities_are_known_before_loading() {
        for (name, expected) in [
            ("models/llama-tiny", &[][..]),
            ("vision/gemma3-tiny", &[MediaKind::Image]),
            ("audio/gemma4-tiny", &MediaKind::ALL),
            ("audio/granite-speech-tiny", &[MediaKind::Audio]),
        ] {
            let path = format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"));
            let folder = ModelFolder::open(path).expect("a model");
            assert_eq!(media(&folder).expect("its files can be read"), expected, "{name}");
        }
    }
}
