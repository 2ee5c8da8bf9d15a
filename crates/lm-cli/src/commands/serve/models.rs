//! Models of a server: one that is loaded at its start, or several that share the memory.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use lm_api::ConversationConfig;
use lm_model::ModelFolder;
use lm_server::ServedModel;
use lm_session::{Engine, EngineSettings, MediaKind, Models, WeightChoice, available_memory};
use lm_template::PromptTemplate;

use super::Args;
use crate::args::{CallTreatment, RunArgs, check_context, usage};
use crate::memory;
use crate::model;
use crate::requantization;

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
}

impl ModelPaths {
    /// The paths; none is the embedded model.
    fn get(&self) -> &[PathBuf] {
        if self.paths.is_empty() { &self.named } else { &self.paths }
    }
}

/// Returns the models that the arguments name.
///
/// # Errors
/// When one cannot be opened, or loaded if it is the only one; when an option takes a single model.
pub fn models(args: &Args) -> Result<Vec<ServedModel>> {
    let run = run_args(args);
    let paths = args.models.get();
    if paths.len() > 1 || args.keep_alive.is_some() {
        return on_demand(args, &run, paths);
    }
    let path = paths.first().map(PathBuf::as_path);
    let template = args.template.of(&model::folder_with(path, run.load.mmproj.as_deref())?)?;
    let engine = model::engine(path, &run)?;
    let config = config(&engine, template, args.calls.of(path)?);
    Ok(vec![ServedModel::new(engine, config).gguf(model::folder(path)?.is_gguf())])
}

/// Options of a run, with the numbers of requests.
fn run_args(args: &Args) -> RunArgs {
    RunArgs { queue: Some(args.queue.get()), parallel: Some(args.parallel.get()), ..args.run.clone() }
}

/// Models that are loaded when they are used first.
fn on_demand(args: &Args, run: &RunArgs, paths: &[PathBuf]) -> Result<Vec<ServedModel>> {
    refuse_single_model_options(run)?;
    if paths.is_empty() {
        return Err(usage("--keep-alive: the embedded model is not unloaded".to_owned()));
    }
    let Some(budget) = run.load.memory.or_else(available_memory) else {
        return Err(usage(
            "--memory: this system does not report its memory: give the limit of all models".to_owned(),
        ));
    };
    let keep_alive = args.keep_alive.map(|seconds| Duration::from_secs(seconds.get() as u64));
    let settings = EngineSettings { keep_alive, ..run.engine_settings() };
    let (registry, options) = (Models::new(budget), run.load.options()?);
    let request = memory::request(run, WeightChoice::Auto);
    let served = |path: &PathBuf| {
        let folder = model::folder(Some(path))?;
        if let Some(context) = run.context {
            check_context(context, folder.config()?.max_position_embeddings)?;
        }
        requantization::warn(&folder, Some(path), run.load.quantize.or(run.load.dtype))?;
        let (registry, name, is_gguf) = (registry.clone(), folder.name().to_owned(), folder.is_gguf());
        let template = args.template.of(&folder)?;
        let media = media(&folder).with_context(|| path.display().to_string())?;
        registry
            .add(&name, folder, &request, options.clone(), settings.clone())
            .with_context(|| path.display().to_string())?;
        let calls = args.calls.of(Some(path))?;
        let load = move |name: &str| {
            let engine = registry.engine(name, &mut |_| {})?;
            let config = config(&engine, template.clone(), calls.clone());
            Ok((engine, config))
        };
        Ok(ServedModel::on_demand(name.clone(), move || load(&name)).media(media).gguf(is_gguf))
    };
    paths.iter().map(served).collect()
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
