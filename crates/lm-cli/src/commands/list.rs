//! `lm list`: the models on this machine that can be loaded by name.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use lm_hub::{CachedModel, ModelStores, StoredModel};
use lm_model::ModelFolder;
use serde_json::json;

use crate::{events, size};

const EXAMPLES: &str = "\
Examples:
  lm list
  lm list --json | jq -r .path
  lm chat \"$(lm list --json | jq -r .name | head -1)\"

Sizes are those of all files of a model, as under `files` of `lm inspect`. Each name is valid where a model is expected; a GGUF file's own name is shown last. Models of LM Studio and Ollama are used where they are.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print models as JSON Lines
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let stores = ModelStores::from_env()?;
    let models = stores.list()?;
    let cached = stores.hugging_face.models()?;
    let mut out = io::stdout().lock();
    if args.json {
        for StoredModel { name, store, path, projector, bytes } in &models {
            let store = store.name();
            writeln!(
                out,
                "{}",
                json!({
                    "version": events::VERSION,
                    "name": name,
                    "general_name": stored_name(path),
                    "store": store,
                    "path": path,
                    "projector": projector,
                    "bytes": bytes,
                })
            )?;
        }
        return Ok(());
    }
    let mut rows: Vec<[String; 4]> = models.iter().map(row).collect();
    rows.extend(cached.iter().filter_map(|model| unfinished(model, &models)));
    if rows.is_empty() {
        eprintln!("no models on this machine; `lm pull OWNER/NAME` downloads one");
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, sizes, notes) = (width(0), width(1), width(2));
    for [name, size, note, stored_name] in rows {
        let line = format!("{name:names$}  {size:>sizes$}  {note:notes$}  {stored_name}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(model: &StoredModel) -> [String; 4] {
    let stored_name = stored_name(&model.path).unwrap_or_default();
    [model.name.clone(), size::format_bytes(model.bytes), model.store.to_string(), stored_name]
}

/// Name in a GGUF file, `general.name`; `None` also for a file that cannot be read.
fn stored_name(path: &Path) -> Option<String> {
    // The folder of a model in safetensors is not opened: it has no such name.
    if !path.is_file() {
        return None;
    }
    ModelFolder::open(path).ok()?.stored_name().ok()?
}

/// Row of a cached model that occupies space but cannot be loaded.
fn unfinished(model: &CachedModel, loadable: &[StoredModel]) -> Option<[String; 4]> {
    let is_loadable = loadable.iter().any(|other| other.path.starts_with(&model.folder));
    let bytes = if is_loadable { model.incomplete_bytes } else { model.bytes };
    let note =
        if model.incomplete_bytes > 0 { "Hugging Face, not whole yet" } else { "Hugging Face, no weights" };
    (bytes > 0).then(|| [model.repo.to_string(), size::format_bytes(bytes), note.to_owned(), String::new()])
}
