//! Printed results of a conversion.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use lm_model::{ModelFolder, WeightFormat};

use super::output::Output;
use super::suggestions::Conversion;
use crate::size;

/// Prints the output with its formats and its size; `format` is `None` for types as stored.
pub fn print_written(conversion: &Conversion<'_>, format: Option<WeightFormat>) -> Result<()> {
    let target = conversion.output;
    let shown = || target.display().to_string();
    let bytes = size_of_files(target).with_context(shown)?;
    let formats = match (Output::of(target), format) {
        (Output::Folder, Some(format)) => format.to_string(),
        _ => types_of_matrices(target).with_context(shown)?,
    };
    let as_stored = if format.is_none() { " as stored" } else { "" };
    let source = if conversion.model.is_none() { " from the embedded model" } else { "" };
    println!("wrote {} ({formats}{as_stored}, {}){source}", target.display(), size::format_bytes(bytes));
    Ok(())
}

/// Types of the matrices of a GGUF file, that of most bytes first.
fn types_of_matrices(path: &Path) -> Result<String> {
    let mut bytes: BTreeMap<String, usize> = BTreeMap::new();
    for tensor in ModelFolder::open(path)?.tensors()?.into_iter().filter(|tensor| tensor.shape.len() > 1) {
        *bytes.entry(tensor.dtype.to_lowercase()).or_default() += tensor.bytes;
    }
    let mut types: Vec<_> = bytes.into_iter().collect();
    types.sort_by_key(|row| std::cmp::Reverse(row.1));
    Ok(types.into_iter().map(|row| row.0).collect::<Vec<_>>().join(", "))
}

/// Prints notes on the encoders that the output lacks.
pub fn note_on_encoders(folder: &ModelFolder, conversion: &Conversion<'_>) {
    // An unreadable encoder is not an error here: none is copied.
    let images = matches!(folder.reads_images(), Ok(true));
    let audio = matches!(folder.reads_audio(), Ok(true));
    let command = |output: Output| format!("`{}`", conversion.command(output, output.formats()[0]));
    match Output::of(conversion.output) {
        Output::Gguf => {
            if images {
                eprintln!(
                    "note: the GGUF file has the text model alone; images need the vision encoder in a second file, an mmproj*.gguf \
                     beside it or --mmproj FILE"
                );
            }
            if audio {
                eprintln!(
                    "note: the GGUF file has the text model alone, without the audio encoder, which only folders have: {} keeps it",
                    command(Output::Folder)
                );
            }
        }
        Output::Folder if images && folder.projector_file().is_some() => eprintln!(
            "note: the folder has the text model alone; the vision encoder in the mmproj file is used beside a GGUF file: {}",
            command(Output::Gguf)
        ),
        Output::Folder => {}
    }
}

/// Prints a note on the matrices that are quantised without an importance.
pub fn note_without_importance(names: &[String]) {
    const SHOWN: usize = 3;
    if !names.is_empty() {
        let more = if names.len() > SHOWN { ", …" } else { "" };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        eprintln!("note: quantised without importance, {} of the matrices: {shown}{more}", names.len());
    }
}

/// Bytes of a file, or of the files of a folder.
fn size_of_files(path: &Path) -> std::io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    path.read_dir()?.map(|entry| size_of_files(&entry?.path())).sum()
}
