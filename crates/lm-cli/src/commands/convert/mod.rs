//! `lm convert`: converts a model to a quantised folder or a GGUF file.

mod output;
mod report;
mod suggestions;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lm_model::{ImportanceMatrix, ModelFolder, WeightFormat};

use self::output::Output;
use self::suggestions::{Conversion, copies, is_output, missing_folder, missing_output, unused, word};
use crate::args::usage;
use crate::{model, progress, requantization};

const EXAMPLES: &str = "\
Examples:
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4
  lm chat ./Qwen3-0.6B-q4
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4 --imatrix imatrix.gguf   after `lm imatrix`
  lm convert ./Qwen3-0.6B Qwen3-0.6B-Q8_0.gguf --quantize q8_0
  lm convert Qwen3-0.6B-Q8_0.gguf ./Qwen3-0.6B-q4 --quantize q4
  lm convert parts-00001-of-00002.gguf one.gguf    its own types, in one file
  lm convert pocket.gguf                       the embedded model

The blocks of a GGUF file are dequantised for another format, which adds to their error: start from the original weights where \
you have them. Loading the copy gives the same weights as `--quantize` with the original, sooner. A GGUF file is like those of llama.cpp's converter. \
An interrupted conversion leaves a hidden file or folder beside the output, which the next one removes.";

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
    /// Format of the weight matrices: q8 or q4 for a folder [default: q8]; q8_0, q4_0, f16, bf16 or f32 for a
    /// GGUF file [default: q8_0; of a GGUF file in blocks, their types as stored]
    #[arg(long, value_name = "FORMAT")]
    quantize: Option<WeightFormat>,
    /// Importance matrix of `lm imatrix` or llama-imatrix (GGUF), for --quantize q4: weights that matter more
    /// have less error
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
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

pub fn run(args: &Args) -> Result<()> {
    lm_kernels::Isa::requested()?; // Also where no kernel runs.
    let (path, target) = args.paths()?;
    let (output, conversion) = (Output::of(target), Conversion { model: path, output: target });
    let format = output.format(args.quantize, &conversion)?;
    let importance = args.importance(output, format)?;
    let folder = model::folder(path)?;
    check_output(target)?;
    let as_stored = args.quantize.is_none() && output == Output::Gguf && keeps_types(&folder);
    let format = (!as_stored).then_some(format);
    requantization::warn(&folder, path, format)?;
    let written = write(&folder, target, format, importance.as_ref());
    let refused = || {
        let alternative = conversion.alternative(&folder, format);
        format!("`{}` cannot be converted to {}{alternative}", folder.name(), output.name())
    };
    let plain = written.with_context(refused)?;
    report::note_without_importance(&plain);
    report::note_on_encoders(&folder, &conversion);
    report::print_written(&conversion, format)
}

/// Returns true for a GGUF model in blocks, which is copied with its types unless a format is given.
fn keeps_types(folder: &ModelFolder) -> bool {
    folder.is_gguf() && folder.footprint().is_ok_and(|footprint| footprint.quantized().is_some())
}

/// Writes the output, with a progress bar; returns the names of the matrices without importance.
fn write(
    folder: &ModelFolder,
    target: &Path,
    format: Option<WeightFormat>,
    importance: Option<&ImportanceMatrix>,
) -> lm_model::Result<Vec<String>> {
    let bar = progress::progress_bar("converting");
    let mut show = progress::show_on(&bar);
    let written = match (importance, format, Output::of(target)) {
        (Some(importance), ..) => folder.convert_with_importance(target, importance, &mut show),
        (None, Some(format), Output::Folder) => {
            folder.convert(target, format, &mut show).map(|()| Vec::new())
        }
        (None, format, _) => folder.convert_to_gguf(target, format, &mut show).map(|()| Vec::new()),
    };
    bar.finish_and_clear();
    written
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
