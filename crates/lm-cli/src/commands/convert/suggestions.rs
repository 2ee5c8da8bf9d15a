//! Commands that errors of a conversion suggest.

use std::path::{Path, PathBuf};

use lm_model::{ModelFolder, WeightFormat};

use super::keeps_types;
use super::output::Output;
use crate::args::usage;
use crate::locate::locate;
use crate::{failure, model};

/// Model and output of a conversion.
pub struct Conversion<'a> {
    /// `None` is the embedded model.
    pub model: Option<&'a Path>,
    pub output: &'a Path,
}

impl Conversion<'_> {
    /// Command of a conversion of the same model to an unused name, with the ending of the kind of output.
    pub fn command(&self, output: Output, format: WeightFormat) -> String {
        let target = self.output.with_file_name(stem(self.output) + output.ending());
        format!("{} --quantize {format}", self.line(&unused(&target)))
    }

    /// Command of a conversion of the same model to `target`.
    fn line(&self, target: &Path) -> String {
        let model = self.model.map_or_else(String::new, |model| word(model) + " ");
        format!("lm convert {model}{}", word(target))
    }

    /// Another conversion of the model if this one, which failed, cannot be done: to the other kind of
    /// output. Empty if that fails too.
    pub fn alternative(&self, folder: &ModelFolder, format: Option<WeightFormat>) -> String {
        let other = Output::of(self.output).other();
        let wanted = format.unwrap_or(Output::of(self.output).formats()[0]);
        let instead = other.format_like(wanted).unwrap_or(wanted);
        let instead = Some(instead).filter(|format| other.formats().contains(format));
        let instead = instead.unwrap_or(other.formats()[0]);
        // An error of the output, or of values of weights, is not one of the kind of output.
        if folder.check_conversion(format).is_ok() || folder.check_conversion(instead).is_err() {
            return String::new();
        }
        format!(" (`{}` writes {})", self.command(other, instead), other.name())
    }
}

/// Returns true if the only path can be the output for the embedded model: it is not a model, and can be
/// created.
pub fn is_output(path: &Path) -> bool {
    path != Path::new(lm_pocket::NAME) && locate(path).is_err() && missing_folder(path).is_none()
}

/// Returns the folder of an output if it does not exist.
pub fn missing_folder(output: &Path) -> Option<&Path> {
    output.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
}

/// Error of a command with one path that cannot be the output for the embedded model.
pub fn missing_output(path: &Path) -> anyhow::Error {
    if path.exists() {
        return usage(format!(
            "the output is missing: `{}` exists, and an only path that exists is read as the model; {}; to convert the embedded model, name \
             an output that does not exist, as in `lm convert {}`",
            path.display(),
            copies(path),
            word(&unused(path))
        ));
    }
    match missing_folder(path) {
        Some(parent) => usage(format!(
            "the output is missing: `{}` is read as the model, because there is no folder `{}` to write to; {}",
            path.display(),
            parent.display(),
            copies(path)
        )),
        None => usage(format!("the output is missing; {}", copies(path))),
    }
}

/// Names the commands that write copies of a model, or the reason that none does.
pub fn copies(model: &Path) -> String {
    let (found, name) = match model::folder(Some(model)) {
        Ok(folder) => (folder, stem(model)),
        Err(error) => {
            let next = failure::hint(&error).map_or_else(String::new, |hint| format!(" ({hint})"));
            return failure::message(&error) + &next;
        }
    };
    let of = |output: Output| {
        let format = output.formats()[0];
        let conversion = Conversion { model: Some(model), output: Path::new(&name) };
        // The default of a quantised GGUF file is its own types.
        let as_stored = output == Output::Gguf && keeps_types(&found);
        let options = if as_stored { format!(" --quantize {format}") } else { String::new() };
        let target = unused(Path::new(&format!("{name}-{format}{}", output.ending())));
        let line = format!("`{}{options}`", conversion.line(&target));
        found.check_conversion(format).map(|()| line).map_err(anyhow::Error::from)
    };
    match (of(Output::Folder), of(Output::Gguf)) {
        (Ok(folder), Ok(gguf)) => format!("write {folder} for a folder or {gguf} for a GGUF file"),
        (Ok(folder), Err(_)) => format!("write {folder} for a folder"),
        (Err(_), Ok(gguf)) => format!("write {gguf} for a GGUF file"),
        (Err(_), Err(error)) => format!("it cannot be converted: {}", failure::message(&error)),
    }
}

/// Name of a model's file or folder without `.gguf`, or its stored name.
fn stem(model: &Path) -> String {
    let name = model.file_name().unwrap_or("model".as_ref()).to_string_lossy().into_owned();
    match Output::of(model) {
        Output::Folder => name,
        Output::Gguf => model.file_stem().map_or(name, |stem| stem.to_string_lossy().into_owned()),
    }
}

/// Returns the path, or the first of those with `-2`, `-3`, … that does not exist.
pub fn unused(path: &Path) -> PathBuf {
    let ending = Output::of(path).ending();
    let numbered = (2..).map(|number| path.with_file_name(format!("{}-{number}{ending}", stem(path))));
    let mut candidates = std::iter::once(path.to_owned()).chain(numbered);
    candidates.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

/// Quotes a path for a shell.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map(Into::into).unwrap_or(text)
}
