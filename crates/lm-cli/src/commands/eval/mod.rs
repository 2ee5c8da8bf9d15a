//! `lm eval`: perplexity of a text, and KL divergence of the model's distributions from another model's.

mod measures;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lm_model::{KvDtype, LoadOptions, LoadedModel, LogitRows, WeightFormat};
use lm_tokenizer::TokenId;
use serde_json::json;

use crate::args::{LoadArgs, TextArgs, quantized_format, read_text};
use crate::reader::Reader;
use crate::windows::Windows;
use crate::{events, model, progress};

use measures::Measures;

const EXAMPLES: &str = "\
The text is cut into windows that do not overlap; each is read from an empty cache, so that its first tokens have \
little before them. Special tokens spelled in the text are recognised. Each window begins with the tokens that the model's \
tokenizer puts before a text, such as BOS, or with --prefix; then all tokens of the text are scored. With neither, the \
first token of a window is not.

KL divergences are means over the scored tokens, in nats, from the distribution of --against to the model's. The model \
of --against keeps its keys and values in f32. Standard errors take tokens as independent.

Examples:
  lm eval ./Qwen3-0.6B notes.txt
  lm eval ./Qwen3-0.6B notes.txt --quantize q4 --against ./Qwen3-0.6B
  lm eval ./Llama-3.2-1B notes.txt --context 2048";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// Reference model, as stored unless --against-quantize is given; may be the same model
    #[arg(long, value_name = "OTHER")]
    against: Option<PathBuf>,
    /// Quantise the reference model's weights while loading: q8 or q4
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format, requires = "against")]
    against_quantize: Option<WeightFormat>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: LoadArgs,
}

impl Args {
    /// Returns the window length, which both models must support.
    fn window(&self, path: Option<&Path>) -> Result<NonZeroUsize> {
        let mut limit = model::folder(path)?.config()?.max_position_embeddings;
        if let Some(base) = &self.against {
            let config = model::folder(Some(base)).and_then(|folder| Ok(folder.config()?));
            limit = limit.min(config.context("--against")?.max_position_embeddings);
        }
        self.text.window(limit)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let (path, file) = args.text.paths()?;
    let text = read_text(file)?;
    let context = args.window(path)?;
    let options = args.load.options()?;
    // With --against the loss is measured.
    let load = if args.against.is_some() { model::load } else { model::load_with_warning };
    let tested = load(path, &options, &args.load)?;
    let base = match &args.against {
        Some(path) => {
            let quantization = args.against_quantize;
            let options = LoadOptions { quantization, kv_dtype: KvDtype::F32, ..options };
            Some(model::load(Some(path), &options, &args.load).context("--against")?)
        }
        None => None,
    };
    let windows = args.text.windows(&tested.tokenizer, &text, context)?;
    ensure!(
        windows.scored() > 0,
        "{}: it has {} tokens, and none can be scored",
        file.display(),
        windows.tokens()
    );
    if let Some(base) = &base {
        check_vocabulary(&tested, base, &text)?;
    }
    let measures = measure(&tested, base.as_ref(), &windows, context.get())?;
    let report =
        Report { tested: &tested, base: base.as_ref(), windows: &windows, measures: &measures, context };
    report.print(args.json)
}

/// Checks that both models have the same vocabulary, so that their distributions can be compared.
///
/// # Errors
/// When the logits' widths differ, or the text is tokenized differently.
fn check_vocabulary(tested: &LoadedModel, base: &LoadedModel, text: &str) -> Result<()> {
    let widths = (tested.model.info().logits_width, base.model.info().logits_width);
    ensure!(widths.0 == widths.1, "{} tokens cannot be compared with {} of --against", widths.0, widths.1);
    let ids: Vec<TokenId> = tested.tokenizer.encode(text)?;
    ensure!(ids == base.tokenizer.encode(text)?, "the tokenizer of --against gives other tokens");
    Ok(())
}

/// Runs both models on the text, window by window.
fn measure(
    tested: &LoadedModel,
    base: Option<&LoadedModel>,
    windows: &Windows,
    context: usize,
) -> Result<Measures> {
    let mut tested = Reader::new(tested, context)?;
    let mut base = base.map(|base| Reader::new(base, context)).transpose().context("--against")?;
    let mut measures = Measures::default();
    let bar = progress::counting_bar("scoring", "tokens", windows.scored());
    for window in windows.iter() {
        for piece in window.pieces() {
            let read = |reader: &mut Reader<'_>| reader.read(&window.ids, piece.clone(), LogitRows::All);
            let logits = read(&mut tested)?;
            let base = base.as_mut().map(read).transpose()?;
            for (row, index) in piece.enumerate() {
                if index + 1 < window.first_scored {
                    continue;
                }
                let base = base.as_ref().map(|base| base.sequence(0).row(row));
                measures.add(window.ids[index + 1] as usize, logits.sequence(0).row(row), base)?;
            }
            bar.set_position(measures.loss.count() as u64);
        }
    }
    bar.finish_and_clear();
    Ok(measures)
}

/// The printed report.
struct Report<'a> {
    tested: &'a LoadedModel,
    base: Option<&'a LoadedModel>,
    windows: &'a Windows,
    measures: &'a Measures,
    context: NonZeroUsize,
}

impl Report<'_> {
    fn print(&self, json: bool) -> Result<()> {
        let mut out = std::io::stdout().lock();
        Ok(if json { self.write_json(&mut out) } else { self.write_text(&mut out) }?)
    }

    /// Share of the tokens at which both models have the same most likely token.
    fn same_top(&self) -> f64 {
        self.measures.divergence.same_top as f64 / self.measures.loss.count().max(1) as f64
    }

    fn write_json(&self, out: &mut impl Write) -> std::io::Result<()> {
        let kl = &self.measures.divergence.kl;
        let against = self.base.map(|base| {
            json!({
                "model": base.name,
                "format": base.model.info().format_names(),
                "kl_divergence": kl.mean(),
                "kl_standard_error": kl.standard_error(),
                "same_top": self.same_top(),
            })
        });
        let report = json!({
            "version": events::VERSION,
            "model": self.tested.name,
            "format": self.tested.model.info().format_names(),
            "device": self.tested.model.info().device.to_string(),
            "tokens": self.windows.tokens(),
            "scored_tokens": self.measures.loss.count(),
            "windows": self.windows.count(),
            "context": self.context,
            "perplexity": self.measures.perplexity(),
            "perplexity_standard_error": self.measures.perplexity_error(),
            "against": against,
        });
        writeln!(out, "{report}")
    }

    fn write_text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { tested, windows, measures, .. } = self;
        let info = tested.model.info();
        let (scored, context) = (measures.loss.count(), self.context);
        writeln!(out, "{}: {}, {} on {}", tested.name, info.architecture, info.format_names(), info.device)?;
        writeln!(out, "{scored} tokens of {} scored, in windows of {context}", windows.tokens())?;
        let (perplexity, error) = (measures.perplexity(), measures.perplexity_error());
        writeln!(out, "perplexity      {perplexity:.4} ± {error:.4}")?;
        let Some(base) = self.base else { return Ok(()) };
        let kl = &measures.divergence.kl;
        writeln!(out, "against         {}, {}", base.name, base.model.info().format_names())?;
        writeln!(out, "KL divergence   {:.4e} ± {:.1e}", kl.mean(), kl.standard_error())?;
        writeln!(out, "same top token  {:.2} %", 100.0 * self.same_top())
    }
}
