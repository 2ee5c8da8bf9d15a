//! `lm imatrix`: the importance matrix of a model over a text.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lm_model::{Calibration, LoadedModel, LogitRows};

use crate::args::{LoadArgs, TextArgs, numbers, read_text};
use crate::counted::counted;
use crate::reader::Reader;
use crate::windows::Windows;
use crate::{model, progress};

const EXAMPLES: &str = "\
For each linear layer, the mean square of each input column is recorded. Columns with a large input matter more: \
`lm convert --imatrix` quantises their weights with less error. The text should be like that of later prompts, the chat \
template included. The file has the format of llama.cpp's \
llama-imatrix, and llama-quantize reads it.

The text is cut into windows that do not overlap, as by `lm eval`. Special tokens spelled in the text are recognised. Each \
window begins with the tokens that the model's tokenizer puts before a text, such as BOS, or with --prefix.

Examples:
  lm imatrix ./Qwen3-0.6B calibration.txt -o Qwen3-0.6B.imatrix.gguf
  lm imatrix ./Llama-3.2-1B calibration.txt -o Llama-3.2-1B.imatrix.gguf
  lm convert ./Qwen3-0.6B ./Qwen3-0.6B-q4 --quantize q4 --imatrix Qwen3-0.6B.imatrix.gguf
  lm eval ./Qwen3-0.6B-q4 notes.txt --against ./Qwen3-0.6B";

/// A text shorter than this gets a note. Tens of thousands are common.
const FEW_TOKENS: usize = 2_000;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// File to write, which must not exist yet
    #[arg(long, short, value_name = "FILE", default_value = "imatrix.gguf")]
    output: PathBuf,
    /// Maximum number of windows [default: all]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    chunks: Option<NonZeroUsize>,
    #[command(flatten)]
    load: LoadArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let (path, file) = args.text.paths()?;
    let text = read_text(file)?;
    let output = args.output.display();
    ensure!(
        args.output.symlink_metadata().is_err(),
        "`{output}` cannot be written: it exists already; remove it, or name another by --output"
    );
    ensure!(is_in_a_folder(&args.output), "`{output}` cannot be written: there is no such folder");
    let context = args.text.window(model::folder(path)?.config()?.max_position_embeddings)?;
    let (loaded, recorder) = model::load_recording(path, &args.load.options()?, &args.load)?;
    let windows = args.text.windows(&loaded.tokenizer, &text, context)?;
    let chunks = windows.count().min(args.chunks.map_or(usize::MAX, NonZeroUsize::get));
    ensure!(chunks > 0, "{}: it has no tokens", file.display());
    let tokens = read(&loaded, &windows, chunks, context.get())?;
    let calibration = Calibration {
        datasets: vec![file.display().to_string()],
        chunk_count: chunks as u32,
        chunk_size: context.get() as u32,
    };
    let importance = recorder.importance_matrix(calibration)?;
    importance.save(&args.output).context("the importance matrix cannot be written")?;
    let layers = counted(importance.layers().len(), "linear layer");
    println!("wrote {output} ({layers}, {})", counted(tokens, "token"));
    if tokens < FEW_TOKENS {
        eprintln!(
            "note: a text of {} is short, and the weights may become worse than without importance; use a longer one",
            counted(tokens, "token"),
        );
    }
    Ok(())
}

/// Returns true if a file can have this path: its folder exists.
fn is_in_a_folder(path: &Path) -> bool {
    let folder = path
        .parent()
        .map_or(path, |folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    folder.is_dir() && !path.to_string_lossy().ends_with(std::path::is_separator)
}

/// Runs the first windows; returns their number of tokens.
fn read(loaded: &LoadedModel, windows: &Windows, chunks: usize, context: usize) -> Result<usize> {
    let (mut reader, mut tokens) = (Reader::new(loaded, context)?, 0);
    let bar = progress::counting_bar("running", "windows", chunks);
    for window in windows.iter().take(chunks) {
        for piece in window.all_pieces() {
            reader.read(&window.ids, piece, LogitRows::All)?;
        }
        tokens += window.ids.len();
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(tokens)
}
