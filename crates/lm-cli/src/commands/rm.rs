//! `lm rm`: removes a model from the cache.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use lm_hub::{Error, ModelName, ModelStores, Removal, Store};

use crate::size;

const EXAMPLES: &str = "\
Examples:
  lm rm Qwen/Qwen3-0.6B
  lm rm Qwen/Qwen3-0.6B@v1.0 --yes                     that revision, and what no other one needs
  lm rm bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M    that GGUF model

Models of LM Studio and Ollama are removed there.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// OWNER/NAME, OWNER/NAME:FILE for one GGUF model, or OWNER/NAME@REVISION for one revision
    #[arg(value_name = "NAME")]
    name: ModelName,
    /// Remove without confirmation
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let stores = ModelStores::from_env()?;
    let removal = match stores.hugging_face.removal(&args.name) {
        Err(Error::NotFound { .. }) => return Err(elsewhere(&stores, &args.name)),
        removal => removal?,
    };
    if !args.yes && !confirmed(&removal)? {
        bail!("nothing was removed");
    }
    removal.execute()?;
    println!("{} removed, {} freed", removal.name, size::format_bytes(removal.bytes));
    if removal.shared_bytes > 0 {
        let kept = size::format_bytes(removal.shared_bytes);
        println!(
            "{kept} stay in the store that repositories of the cache share; `hf cache prune` looks after it"
        );
    }
    Ok(())
}

/// Error for a model that is not in the cache.
fn elsewhere(stores: &ModelStores, name: &ModelName) -> anyhow::Error {
    match stores.find(name) {
        Ok(model) if model.store != Store::HuggingFace => {
            Error::ManagedElsewhere { name: name.to_string(), program: model.store.name() }.into()
        }
        _ => Error::NotFound { name: name.to_string(), search_path: stores.search_path() }.into(),
    }
}

/// Asks for confirmation at the terminal; fails without a terminal.
fn confirmed(removal: &Removal) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nobody can be asked whether {} is to be removed; `--yes` removes it", removal.name);
    }
    eprint!("Remove {}, {}? [y/N] ", removal.name, size::format_bytes(removal.bytes));
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
