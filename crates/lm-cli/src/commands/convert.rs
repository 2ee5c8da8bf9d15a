//! `lm convert`: converts a model to a quantised folder or a GGUF file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lm_kernels::GgmlType;
use lm_model::{ImportanceMatrix, WeightFormat};

use crate::args::usage;
use crate::locate::locate;
use crate::{failure, model, progress, size};

const EXAMPLES: &str = "\
Examples:
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4
  lm chat ./Qwen3-0.6B-q4
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4 --imatrix imatrix.gguf   after `lm imatrix`
  lm convert ./Qwen3-0.6B Qwen3-0.6B-Q8_0.gguf --quantize q8_0
  lm convert pocket.gguf                       the embedded model

Loading the copy gives the same weights as `--quantize` with the original, sooner. A GGUF file is like those of llama.cpp's converter. \
An interrupted conversion leaves a hidden file or folder beside the output, which the next one removes.";

/// Matrix formats of folders; the first is the default.
const OF_FOLDERS: [WeightFormat; 2] = [WeightFormat::Q8, WeightFormat::Q4];
/// Matrix formats of GGUF files; the first is the default.
const OF_GGUF: [WeightFormat; 5] = [
    WeightFormat::Ggml(GgmlType::Q8_0),
    WeightFormat::Ggml(GgmlType::Q4_0),
    WeightFormat::F16,
    WeightFormat::Bf16,
    WeightFormat::F32,
];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "lm convert [OPTIONS] [MODEL] <OUTPUT>")]
pub struct Args {
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model], and the
    /// output, which must not exist yet: a GGUF file if it ends in .gguf, otherwise a folder
    #[arg(value_names = ["MODEL", "OUTPUT"], num_args = 0..=2)]
    paths: Vec<PathBuf>,
    /// Model, as an option; the only path is then the output
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Format of the weight matrices: q8 (default) or q4 for a folder; q8_0 (default), q4_0, f16, bf16 or f32
    /// for a GGUF file
    #[arg(long, value_name = "FORMAT")]
    quantize: Option<WeightFormat>,
    /// Importance matrix of `lm imatrix` or llama-imatrix (GGUF), for --quantize q4: weights that matter more
    /// have less error
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
}

/// Kind of output, by the file name's extension.
#[derive(Clone, Copy)]
enum Output {
    Folder,
    Gguf,
}

impl Output {
    fn of(path: &Path) -> Self {
        let is_gguf = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
        if is_gguf { Self::Gguf } else { Self::Folder }
    }

    /// Returns the wanted format if it is supported, or the default one.
    fn format(self, wanted: Option<WeightFormat>) -> Result<WeightFormat> {
        let (what, known) = match self {
            Self::Folder => ("a folder", &OF_FOLDERS[..]),
            Self::Gguf => ("a GGUF file", &OF_GGUF[..]),
        };
        let format = wanted.unwrap_or(known[0]);
        if !known.contains(&format) {
            let names: Vec<_> = known.iter().map(WeightFormat::to_string).collect();
            return Err(usage(format!(
                "{what} is not written in {format}, only in {}; a name ending in .gguf asks for a GGUF file",
                names.join(", ")
            )));
        }
        Ok(format)
    }
}

impl Args {
    /// Reads the importance matrix.
    fn importance(&self, output: Output, format: WeightFormat) -> Result<Option<ImportanceMatrix>> {
        let Some(path) = &self.imatrix else { return Ok(None) };
        if format != WeightFormat::Q4 {
            let hint = match output {
                Output::Folder => "add `--quantize q4`",
                Output::Gguf => "name a folder as the output, and add `--quantize q4`",
            };
            return Err(usage(format!(
                "--imatrix is used by conversion to a folder in q4, not to {format}; {hint}"
            )));
        }
        ImportanceMatrix::open(path).map(Some).context("--imatrix")
    }

    /// Returns model and output.
    fn paths(&self) -> Result<(Option<&Path>, &Path)> {
        match (self.model.as_deref(), &self.paths[..]) {
            (Some(model), [output]) => Ok((Some(model), output)),
            (None, [model, output]) => Ok((Some(model), output)),
            (Some(_), [_, ..]) => Err(usage("the model is given twice: by position and by --model")),
            (Some(model), []) => Err(usage(format!("the output is missing; {}", copies(model)))),
            (None, [path]) if is_output(path) => Ok((None, path)),
            (None, [path, ..]) => Err(missing_output(path)),
            (None, []) => Err(usage("the output is missing: expected `lm convert MODEL OUTPUT`")),
        }
    }
}

/// Returns true if the only path can be the output for the embedded model: it is not a model, and can be
/// created.
fn is_output(path: &Path) -> bool {
    path != Path::new(lm_pocket::NAME) && locate(path).is_err() && missing_folder(path).is_none()
}

/// Returns the folder of an output if it does not exist.
fn missing_folder(output: &Path) -> Option<&Path> {
    output.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
}

/// Error of a command with one path that cannot be the output for the embedded model.
fn missing_output(path: &Path) -> anyhow::Error {
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
fn copies(model: &Path) -> String {
    let (found, name) = match model::folder(Some(model)) {
        Ok(folder) => (folder, stem(model)),
        Err(error) => {
            let next = failure::hint(&error).map_or_else(String::new, |hint| format!(" ({hint})"));
            return failure::message(&error) + &next;
        }
    };
    let of = |format: WeightFormat, ending: &str| {
        let output = unused(Path::new(&format!("{name}-{format}{ending}")));
        let line = format!("`lm convert {} {}`", word(model), word(&output));
        found.check_conversion(format).map(|()| line).map_err(anyhow::Error::from)
    };
    match (of(OF_FOLDERS[0], ""), of(OF_GGUF[0], ".gguf")) {
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
fn unused(path: &Path) -> PathBuf {
    let ending = match Output::of(path) {
        Output::Folder => "",
        Output::Gguf => ".gguf",
    };
    let numbered = (2..).map(|number| path.with_file_name(format!("{}-{number}{ending}", stem(path))));
    let mut candidates = std::iter::once(path.to_owned()).chain(numbered);
    candidates.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

/// Quotes a path for a shell.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map(Into::into).unwrap_or(text)
}

pub fn run(args: &Args) -> Result<()> {
    lm_kernels::Isa::requested()?; // Also where no kernel runs.
    let (path, target) = args.paths()?;
    let output = Output::of(target);
    let format = output.format(args.quantize)?;
    let importance = args.importance(output, format)?;
    let folder = model::folder(path)?;
    check_output(target)?;
    let bar = progress::progress_bar("converting");
    let mut show = progress::show_on(&bar);
    let converted = match (&importance, output) {
        (Some(importance), _) => folder.convert_with_importance(target, importance, &mut show),
        (None, Output::Folder) => folder.convert(target, format, &mut show).map(|()| Vec::new()),
        (None, Output::Gguf) => folder.convert_to_gguf(target, format, &mut show).map(|()| Vec::new()),
    };
    bar.finish_and_clear();
    let plain = converted.with_context(|| format!("`{}` cannot be converted", folder.name()))?;
    note_without_importance(&plain);
    // An unreadable encoder is not an error here: none is copied.
    let has_encoders = matches!(folder.reads_images(), Ok(true)) || matches!(folder.reads_audio(), Ok(true));
    if matches!(output, Output::Gguf) && has_encoders {
        eprintln!(
            "note: the GGUF file has the text model alone; images need the vision encoder in a second file, an mmproj*.gguf beside it or --mmproj FILE"
        );
    }
    let bytes = size_of_files(target).with_context(|| target.display().to_string())?;
    let source = if path.is_none() { " from the embedded model" } else { "" };
    println!("wrote {} ({format}, {}){source}", target.display(), size::format_bytes(bytes));
    Ok(())
}

/// Checks that the output does not exist, but its folder does.
fn check_output(output: &Path) -> Result<()> {
    let refused = format!("`{}` cannot be written", output.display());
    if let Some(folder) = missing_folder(output) {
        bail!("{refused}: there is no folder `{}`; create it, or name another output", folder.display());
    }
    let Ok(metadata) = output.symlink_metadata() else { return Ok(()) };
    ensure!(
        metadata.is_file() || metadata.is_dir() || metadata.is_symlink(),
        "{refused}: it exists, and is neither a file nor a folder; name another output"
    );
    bail!(
        "{refused}: it exists already; remove it, or name another output, such as {}",
        word(&unused(output))
    )
}

/// Prints a note on the matrices that are quantised without an importance.
fn note_without_importance(names: &[String]) {
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
