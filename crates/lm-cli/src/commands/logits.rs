//! `lm logits`: writes the logits of token ids, to compare them with another implementation.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use lm_model::{CausalLm, KvDtype, LoadOptions, LogitRows};
use lm_tokenizer::TokenId;

use crate::args::{LoadArgs, ModelPath, numbers};
use crate::npy::NpyFile;
use crate::prompt_ids::Prompt;
use crate::reader::Reader;
use crate::{model, progress, prompt_ids};

/// Maximum bytes of logits in memory at a time, unless `--chunk` is given.
const MAX_LOGIT_BYTES: usize = 256 << 20;

const EXAMPLES: &str = "\
A line of the file of ids is a prompt: a JSON list of token ids, or an object with such a list as `ids`. No token is added before them: a \
model that wants a token to begin with needs its id there. Each prompt is run on its own, from an empty cache.

The output is a NumPy array (format 1.0) of little-endian float32, with two dimensions: rows, and the width of the logits. \
`--positions last` gives a row for each prompt, in the order of the lines: the logits after its last token. `--positions all` gives a \
row for each token, those of the first prompt first, without padding; np.split(rows, np.cumsum(lengths)[:-1]) separates the prompts.

Examples:
  echo '[1, 5, 9, 2]' > ids.jsonl
  lm logits ./Qwen3-0.6B --ids ids.jsonl --out logits.npy
  lm logits ./Qwen3-0.6B --ids ids.jsonl --positions all --dtype f32 --out logits.npy

docs/comparing.md goes through a comparison with transformers.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// Prompts as token ids, one JSON list a line; - is standard input
    #[arg(long, value_name = "FILE")]
    ids: PathBuf,
    /// Prompt positions whose logits are written
    #[arg(long, value_enum, default_value_t = Positions::Last)]
    positions: Positions,
    /// Output file
    #[arg(long, value_name = "FILE.npy")]
    out: PathBuf,
    /// Maximum number of tokens per forward pass [default: the whole prompt; for all positions, 256 MiB of
    /// logits]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    chunk: Option<std::num::NonZeroUsize>,
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Positions {
    /// The last token
    Last,
    /// Every token
    All,
}

pub fn run(args: &Args) -> Result<()> {
    let prompts = prompt_ids::read_all(&args.ids)?;
    let mut file = NpyFile::create(&args.out)?;
    let options = args.load.options()?;
    // The model is compared, not the rounding of the cache.
    let options = LoadOptions { kv_dtype: args.load.kv.unwrap_or(KvDtype::F32), ..options };
    let loaded = model::load_with_warning(args.model.get(), &options, &args.load)?;
    let width = loaded.model.info().logits_width;
    let longest = check(&prompts, &*loaded.model).with_context(|| args.ids.display().to_string())?;
    let rows = match args.positions {
        Positions::Last => prompts.len(),
        Positions::All => prompts.iter().map(|prompt| prompt.ids.len()).sum(),
    };
    let chunk = match (args.chunk, args.positions) {
        (Some(chunk), _) => chunk.get(),
        (None, Positions::Last) => usize::MAX,
        (None, Positions::All) => (MAX_LOGIT_BYTES / (width * size_of::<f32>())).max(1),
    };
    file.begin(rows, width)?;
    let mut reader = Reader::new(&loaded, longest)?;
    let bar = progress::progress_bar("running");
    bar.set_length(prompts.len() as u64);
    for prompt in &prompts {
        write_prompt(&mut file, &mut reader, &prompt.ids, chunk, args.positions)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    file.finish()
}

/// Checks that each prompt fits the model, and returns the length of the longest one.
fn check(prompts: &[Prompt], model: &dyn CausalLm) -> Result<usize> {
    let info = model.info();
    for Prompt { line, ids } in prompts {
        let tokens = ids.len();
        ensure!(tokens > 0, "line {line}: the prompt is empty");
        ensure!(
            tokens <= info.context_len,
            "line {line}: the prompt has {tokens} tokens, the model holds {}",
            info.context_len
        );
        prompt_ids::check_known(ids, info.logits_width).map_err(|error| anyhow!("line {line}: {error}"))?;
    }
    prompts.iter().map(|prompt| prompt.ids.len()).max().context("it holds no prompt")
}

/// Runs a prompt in pieces and writes the requested rows.
fn write_prompt(
    file: &mut NpyFile,
    reader: &mut Reader<'_>,
    prompt: &[TokenId],
    chunk: usize,
    positions: Positions,
) -> Result<()> {
    let mut start = 0;
    for piece in prompt.chunks(chunk) {
        let is_last = start + piece.len() == prompt.len();
        let wanted = match positions {
            Positions::All => LogitRows::All,
            Positions::Last if is_last => LogitRows::Last,
            Positions::Last => LogitRows::None,
        };
        let logits = reader.read(prompt, start..start + piece.len(), wanted)?;
        logits.sequence(0).rows().try_for_each(|row| file.push(row))?;
        start += piece.len();
    }
    Ok(())
}
