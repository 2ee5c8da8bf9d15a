//! `lm conversations export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lm_store::{Owner, Store};

use super::show::found;

/// Writes conversations as JSON Lines to a new file, or to standard output.
pub fn export(store: &Store, names: &[String], output: Option<&Path>) -> Result<()> {
    let ids = match names {
        [] => store.list(&Owner::local(), usize::MAX, 0)?.into_iter().map(|summary| summary.id).collect(),
        // A wrong name leaves no file.
        names => names.iter().map(|name| Ok(found(store, name)?.id)).collect::<Result<Vec<String>>>()?,
    };
    let Some(path) = output else { return write(store, &ids, &mut io::stdout().lock()) };
    let file = || path.display().to_string();
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = BufWriter::new(options.open(path).with_context(file)?);
    write(store, &ids, &mut out).with_context(file)?;
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .with_context(file)?;
    eprintln!("{} conversations written to {}", ids.len(), path.display());
    Ok(())
}

fn write(store: &Store, ids: &[String], out: &mut impl Write) -> Result<()> {
    for id in ids {
        // One that was deleted meanwhile is no error.
        if let Some(conversation) = store.get(&Owner::local(), id)? {
            writeln!(out, "{}", conversation.to_json())?;
        }
    }
    Ok(())
}
