//! `lm conversations import`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use lm_store::{Owner, Store, read_lines};

use crate::failure;

/// Adds the conversations of files. One that is invalid is reported, and the others are added.
pub fn import(store: &Store, files: &[PathBuf]) -> Result<ExitCode> {
    let (mut added, mut present, mut failed) = (0_usize, 0_usize, 0_usize);
    for path in files {
        let input: Box<dyn BufRead> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false => Box::new(BufReader::new(File::open(path).with_context(|| path.display().to_string())?)),
        };
        for read in read_lines(input) {
            match read {
                Ok(conversation) => match store.import(&Owner::local(), &conversation)? {
                    Some(_) => added += 1,
                    None => present += 1,
                },
                Err(error) => {
                    failed += 1;
                    failure::print(&anyhow::Error::from(error).context(path.display().to_string()));
                }
            }
        }
    }
    let notes = [(present, "there already"), (failed, "invalid")];
    let notes: String = notes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    eprintln!("{added} imported{notes}");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
