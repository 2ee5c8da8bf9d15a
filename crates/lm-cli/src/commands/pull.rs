//! `lm pull`: downloads a model from the hub into the cache.

use anyhow::Result;
use indicatif::ProgressBar;
use lm_hub::{Check, Hub, HubSettings, ModelName, Network};

use crate::args::usage;
use crate::progress;

const EXAMPLES: &str = "\
Examples:
  lm pull Qwen/Qwen3-0.6B
  lm pull Qwen/Qwen3-0.6B@main
  lm pull bartowski/Llama-3.2-1B-Instruct-GGUF --file Llama-3.2-1B-Instruct-Q4_K_M.gguf
  lm pull bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M
  lm chat Qwen/Qwen3-0.6B

What belongs to the model is downloaded: safetensors or one GGUF model with its vision encoder (mmproj), configuration, tokenizer, \
templates, card and licence. An interrupted download continues where it ended; every file is checked. The path of the model is printed.

HF_HUB_CACHE or HF_HOME is where models are kept, HF_TOKEN or HF_TOKEN_PATH is who asks, HF_ENDPOINT is another hub, and \
HF_HUB_OFFLINE=1 forbids the network.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// OWNER/NAME, or OWNER/NAME@REVISION for a branch, tag or commit
    #[arg(value_name = "NAME")]
    name: ModelName,
    /// GGUF file to download, with all parts of a split file; or the suffix of its name, such as Q4_K_M
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Omit the vision encoder of a GGUF model (its mmproj file): the model takes text only
    #[arg(long)]
    no_mmproj: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let mut name = args.name.clone();
    if let Some(file) = &args.file {
        name = ModelName::with_file(name, file).map_err(|error| usage(format!("--file: {error}")))?;
    }
    let settings = HubSettings::from_env()?;
    if settings.network != Network::Offline {
        eprintln!("asking {} for {name}", settings.endpoint);
    }
    let hub = Hub::new(settings)?;
    let mut pull = hub.plan(&name)?;
    pull.files.retain(|file| !(args.no_mmproj && file.path.is_projector()));
    let bar = progress::progress_bar("");
    bar.set_length(pull.bytes());
    let path = hub.fetch(&pull, &mut |progress| show(&bar, progress))?;
    bar.finish_and_clear();
    for file in pull.files.iter().filter(|file| file.check() == Check::SizeOnly) {
        eprintln!("warning: the hub gives no checksum of {}: only its size was checked", file.path);
    }
    println!("{}", path.display());
    Ok(())
}

fn show(bar: &ProgressBar, progress: lm_hub::PullProgress<'_>) {
    if bar.message() != progress.file.as_str() {
        bar.set_message(progress.file.to_string());
    }
    bar.set_position(progress.done_bytes);
}
