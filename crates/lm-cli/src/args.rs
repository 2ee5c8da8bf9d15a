//! Command line: the commands, and the flags shared by several of them.

use std::env;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use lm_conversation::ConstrainCalls;
use lm_model::{Device, GenerationConfig, KvDtype, LoadOptions, WeightFormat};
use lm_session::{Engine, EngineSettings, SamplerParams, SessionConfig};
use lm_tokenizer::TokenId;

use crate::commands::{
    batch, bench, chat, convert, detokenize, eval, generate, grammar, inspect, list, logits, parse, pull, rm,
    score, template, tokenize,
};

const EXAMPLES: &str = "\
Examples:
  lm chat --tools demo                         talk to the embedded model, with tools
  echo 'How is the weather in Paris?' | lm chat --tools demo
  lm pull Qwen/Qwen3-0.6B                      download a model, then use it by name
  lm generate 'Tell me a joke' --model Qwen/Qwen3-0.6B --quantize q4
  lm inspect ./Qwen3-0.6B
  lm tokenize --text 'Hello, world'

Without a model, the commands use the small one that is part of the program.
Set LM_LOG=debug for a log on standard error.";

/// Chat with a local language model that calls tools
#[derive(Debug, Parser)]
#[command(name = "lm", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk to a model, turn by turn
    Chat(chat::Args),
    /// Answer one prompt
    Generate(generate::Args),
    /// Download a model by name
    Pull(pull::Args),
    /// List the models on this machine
    List(list::Args),
    /// Remove a downloaded model
    Rm(rm::Args),
    /// Show what a model is and needs, without loading its weights
    Inspect(inspect::Args),
    /// Encode texts to token ids, one JSON line each
    Tokenize(tokenize::Args),
    /// Decode token ids to texts, one JSON line each
    Detokenize(detokenize::Args),
    /// Write a model's logits for given token ids to a file
    Logits(logits::Args),
    /// Render conversations to prompts, one JSON object a line
    Template(template::Args),
    /// Parse model output into content, reasoning and tool calls, one JSON object a line
    Parse(parse::Args),
    /// Test which texts a grammar accepts: a family's calls, a schema or a pattern; one JSON object a line
    Grammar(grammar::Args),
    /// Answer chat completions over JSON Lines, many at a time
    Batch(batch::Args),
    /// Measure prefill and decode speed, and the memory's read bandwidth beside it
    Bench(bench::Args),
    /// Write a quantised folder or a GGUF file of a model
    Convert(convert::Args),
    /// Measure the perplexity of a text, and the divergence from another model
    Eval(eval::Args),
    /// Count the recorded replies that a model reproduces exactly
    Score(score::Args),
}

/// Options of loading a model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct LoadArgs {
    /// Device to run on: cpu, ndarray or gpu; ndarray and gpu need a build with the feature
    #[arg(long, default_value_t, value_name = "DEVICE")]
    pub device: Device,
    /// Number of CPU threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Quantise the weights while loading: q8 or q4, or GGUF's q8_0 or q4_0 [default: as stored, if that fits the memory]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub quantize: Option<WeightFormat>,
    /// Weight format in memory: f32, f16, bf16, q8 or q4 [default: as stored]
    #[arg(long, value_name = "FORMAT", conflicts_with = "quantize")]
    pub dtype: Option<WeightFormat>,
    /// KV cache dtype: f16, f32 or q8; q8 halves the memory of f16 at a measurable loss [default: f16, f32 for logits, q8 if
    /// only that fits the memory]
    #[arg(long, value_name = "FORMAT")]
    pub kv: Option<KvDtype>,
    /// Cache quantised weights on disk for the next start [default DIR: the user's cache folder]. They take as much disk space
    /// as memory
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, requires = "quantize")]
    pub pack_cache: Option<Option<PathBuf>>,
    /// Memory limit, such as 8GB [default: memory available now]. Context, KV cache dtype and quantisation are chosen to fit
    /// unless given; a model that cannot fit is refused
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse)]
    pub memory: Option<u64>,
    /// LoRA adapter: a PEFT folder with adapter_config.json
    #[arg(long, value_name = "DIR")]
    pub lora: Option<PathBuf>,
}

/// Largest `--threads`: more than any machine has cores, few enough to be started.
const MAX_THREADS: usize = 1024;

impl LoadArgs {
    /// Returns the load options, and sets the size of the thread pool.
    pub fn options(&self) -> Result<LoadOptions> {
        lm_kernels::Isa::requested()?; // A misspelt LM_CPU is an error here, not a silent default.
        if let Some(threads) = self.threads {
            if threads.get() > MAX_THREADS {
                bail!("--threads is {threads}, expected 1..={MAX_THREADS}");
            }
            lm_kernels::Pool::set_global_threads(threads.get()).context("--threads")?;
        }
        Ok(LoadOptions {
            device: self.device,
            quantization: self.quantize.or(self.dtype),
            kv_dtype: self.kv.unwrap_or_default(),
            pack_cache: self.pack_cache()?,
            adapters: self.lora.iter().cloned().collect(),
        })
    }
}

impl LoadArgs {
    /// Folder of the pack cache, if it is enabled.
    fn pack_cache(&self) -> Result<Option<PathBuf>> {
        match &self.pack_cache {
            None => Ok(None),
            Some(Some(folder)) => Ok(Some(folder.clone())),
            Some(None) => {
                let caches =
                    user_cache_folder().context("--pack-cache: this user has no cache folder, name one")?;
                Ok(Some(caches.join("lm").join("packed")))
            }
        }
    }
}

/// The system's folder for a user's caches.
fn user_cache_folder() -> Option<PathBuf> {
    let folder = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))
    }
}

/// Options of running a model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct RunArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Context length in tokens [default: the model's limit, reduced to fit the memory]
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<NonZeroUsize>,
}

impl RunArgs {
    pub fn engine_settings(&self) -> EngineSettings {
        EngineSettings { max_context: self.context.map(NonZeroUsize::get), ..EngineSettings::default() }
    }
}

/// Options of tool calls.
#[derive(Debug, clap::Args)]
pub struct CallArgs {
    /// Do not constrain tool calls to the tools' schemas while they are generated
    #[arg(long)]
    unconstrained: bool,
}

impl CallArgs {
    pub fn constrain_calls(&self) -> ConstrainCalls {
        if self.unconstrained { ConstrainCalls::No } else { ConstrainCalls::Yes }
    }
}

/// Parser of `--quantize` for clap.
pub fn quantized_format(text: &str) -> Result<WeightFormat, String> {
    match text.parse() {
        Ok(format @ (WeightFormat::Q8 | WeightFormat::Q4)) => Ok(format),
        Ok(format @ WeightFormat::Ggml(ggml)) if ggml.quantizes() => Ok(format),
        _ => Err("known formats: q8, q4, q8_0, q4_0".to_owned()),
    }
}

/// Options of the sampler; the defaults come from the model's `generation_config.json`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplerArgs {
    /// Sampling temperature; 0 is greedy
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Top-k sampling: keep the K most probable tokens; 0 disables it
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Nucleus sampling: keep the smallest set of tokens whose probabilities sum to P; 1 disables it
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Min-p sampling: drop tokens less probable than P times the most probable one; 0 disables it
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Repetition penalty on tokens of the prompt and the reply; 1 disables it
    #[arg(long, value_name = "X")]
    repetition_penalty: Option<f32>,
    /// Presence penalty, subtracted once from the logit of each token in the reply
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Frequency penalty, subtracted from a token's logit for each occurrence in the reply
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Add BIAS to the logit of a token; -inf forbids it; may be repeated
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(TokenId, f32)>,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum number of tokens in a reply [default: until the context is full]
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<NonZeroUsize>,
    /// Stop sequence; the reply ends before it; may be repeated
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
}

impl SamplerArgs {
    /// Creates the session's configuration: the model's generation config, overridden by the flags, and the loaded adapter.
    pub fn session_config(&self, engine: &Engine) -> SessionConfig {
        let config = self.with_advice(engine.generation_config());
        SessionConfig { adapter: crate::model::adapter(engine.model_info()), ..config }
    }

    fn with_advice(&self, advice: &GenerationConfig) -> SessionConfig {
        let advice = SamplerParams::from_generation_config(advice);
        let sampler = SamplerParams {
            temperature: self.temperature.unwrap_or(advice.temperature),
            top_k: self.top_k.unwrap_or(advice.top_k),
            top_p: self.top_p.unwrap_or(advice.top_p),
            min_p: self.min_p.unwrap_or(advice.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(advice.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(advice.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(advice.frequency_penalty),
            logit_bias: self.logit_bias.clone(),
            seed: self.seed,
            ..advice
        };
        SessionConfig {
            sampler,
            stop: self.stop.clone(),
            max_output_tokens: self.max_tokens.map(NonZeroUsize::get),
            ..SessionConfig::default()
        }
    }
}

fn logit_bias(text: &str) -> Result<(TokenId, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected a token id, `=` and a number, as in 17=-2.5".to_owned())
}

/// A model given by position or by `--model`.
#[derive(Debug, clap::Args)]
pub struct ModelPath {
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(value_name = "MODEL")]
    path: Option<PathBuf>,
    /// The same, by name
    #[arg(long = "model", short = 'm', value_name = "MODEL", conflicts_with = "path")]
    named: Option<PathBuf>,
}

impl ModelPath {
    pub fn get(&self) -> Option<&std::path::Path> {
        self.path.as_deref().or(self.named.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_given_wins_over_the_models_advice() {
        let cli =
            Cli::parse_from(["lm", "chat", "--top-k", "5", "--logit-bias", "3=-inf", "--max-tokens", "9"]);
        let Command::Chat(args) = cli.command else { panic!("not chat") };
        let advice = GenerationConfig {
            do_sample: Some(true),
            temperature: Some(0.6),
            top_k: Some(20),
            ..GenerationConfig::default()
        };
        let config = args.sampler.with_advice(&advice);
        assert_eq!((config.sampler.temperature, config.sampler.top_k), (0.6, 5));
        assert_eq!(config.sampler.logit_bias, [(3, f32::NEG_INFINITY)]);
        assert_eq!(config.max_output_tokens, Some(9));
    }

    #[test]
    fn the_pack_cache_is_off_named_or_the_users() {
        let folder = |arguments: &[&str]| {
            let cli = Cli::try_parse_from(["lm", "chat", "--quantize", "q4"].iter().chain(arguments));
            let Command::Chat(args) = cli.expect("is taken").command else { panic!("not chat") };
            args.run.load.pack_cache().expect("HOME is set where tests run")
        };
        assert_eq!(folder(&[]), None);
        assert_eq!(folder(&["--pack-cache=here"]), Some(PathBuf::from("here")));
        assert!(folder(&["--pack-cache"]).expect("there is one").ends_with("lm/packed"));
        assert!(Cli::try_parse_from(["lm", "chat", "--pack-cache"]).is_err(), "nothing is packed to keep");
    }

    #[test]
    fn values_out_of_place_are_refused_with_what_is_known() {
        for (arguments, expected) in [
            (["--quantize", "f16"], "known formats: q8, q4"),
            (["--logit-bias", "x"], "expected a token id"),
            (["--device", "tpu"], "cpu"),
            (["--threads", "0"], "zero"),
        ] {
            let error =
                Cli::try_parse_from(["lm", "chat"].into_iter().chain(arguments)).expect_err("is refused");
            assert!(error.to_string().contains(expected), "{arguments:?}: {error}");
        }
    }
}
