//! Options of loading and running a model.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result};
use lm_model::{Device, KvDtype, LoadOptions, WeightFormat};
use lm_session::EngineSettings;

use super::{numbers, usage};

/// Options of loading a model.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct LoadArgs {
    /// Device to run on: cpu, ndarray, gpu, or auto (a GPU if there is one); ndarray and gpu need a build
    /// with the feature
    #[arg(long, default_value_t, value_name = "DEVICE")]
    pub device: Device,
    /// Number of CPU threads [default: all cores]
    #[arg(long, short = 't', value_name = "N", value_parser = numbers::threads, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Quantise the weights while loading: q8 or q4, or GGUF's q8_0 or q4_0 [default: as stored, if that fits
    /// the memory]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub quantize: Option<WeightFormat>,
    /// Weight format in memory: f32, f16, bf16, q8 or q4 [default: as stored]
    #[arg(long, value_name = "FORMAT", conflicts_with = "quantize")]
    pub dtype: Option<WeightFormat>,
    /// KV cache dtype: f16, f32 or q8; q8 halves the memory of f16 at a measurable loss [default: f16, f32
    /// for logits, q8 if only that fits the memory]
    #[arg(long, value_name = "FORMAT")]
    pub kv: Option<KvDtype>,
    /// Cache quantised weights on disk for the next start [default DIR: the user's cache folder]. They take
    /// as much disk space as memory; the embedded model is not cached
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, requires = "quantize")]
    pub pack_cache: Option<Option<PathBuf>>,
    /// Memory limit, such as 8GB [default: memory available now]. Context, KV cache dtype and quantisation
    /// are chosen to fit unless given; a model that cannot fit is refused. Images and audio take more: up to
    /// 256 MB encoded, and up to 770 MB while a very large image is decoded
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse, allow_negative_numbers = true)]
    pub memory: Option<u64>,
    /// GGUF file with the vision encoder of a GGUF model [default: the only mmproj*.gguf beside the model]
    #[arg(long, value_name = "FILE")]
    pub mmproj: Option<PathBuf>,
    /// LoRA adapter: a PEFT folder with adapter_config.json
    #[arg(long, value_name = "DIR")]
    pub lora: Option<PathBuf>,
}

impl LoadArgs {
    /// Returns the load options, and sets the size of the thread pool.
    pub fn options(&self) -> Result<LoadOptions> {
        // Before anything is read: a misspelt variable is an error, not the default.
        lm_kernels::Isa::requested()?;
        lm_kernels::PrefetchPlan::requested()?;
        crate::prefetch::restore();
        if let Some(threads) = self.threads {
            lm_kernels::Pool::set_global_threads(threads.get()).context("--threads")?;
        }
        Ok(LoadOptions {
            device: self.device,
            quantization: self.quantize.or(self.dtype),
            kv_dtype: self.kv.unwrap_or_default(),
            pack_cache: self.pack_cache()?,
            adapters: self.lora.iter().cloned().collect(),
            ..LoadOptions::default()
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
                let caches = crate::user_folders::cache()
                    .context("--pack-cache: this user has no cache folder, name one")?;
                Ok(Some(caches.join("lm").join("packed")))
            }
        }
    }
}

/// Options of running a model.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct RunArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Context length in tokens [default: the model's limit, reduced to fit the memory]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    pub context: Option<NonZeroUsize>,
    /// Draft model of speculative decoding, with the same tokenizer: the same replies in fewer steps. Its
    /// memory does not count towards `--memory`
    #[arg(long, value_name = "MODEL")]
    pub draft_model: Option<PathBuf>,
    /// Record the requests to the model in a new file, for `lm replay`, which leaves out those with images or
    /// audio
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Maximum number of waiting requests. `None`: all requests are this program's, which bounds them itself
    /// (`lm batch --parallel`).
    #[arg(skip)]
    pub queue: Option<usize>,
    /// Maximum number of requests in the batch. `None`: the engine's default.
    #[arg(skip)]
    pub parallel: Option<usize>,
}

impl RunArgs {
    /// Refuses the options of generations in a command that generates nothing.
    ///
    /// # Errors
    /// A usage error.
    pub fn refuse_generation_options(&self, command: &str) -> Result<()> {
        match (&self.draft_model, &self.record) {
            (Some(_), _) => Err(super::usage(format!("--draft-model: `lm {command}` drafts no tokens"))),
            (None, Some(_)) => {
                Err(super::usage(format!("--record: `lm {command}` has no requests to record")))
            }
            (None, None) => Ok(()),
        }
    }

    pub fn engine_settings(&self) -> EngineSettings {
        let defaults = EngineSettings::default();
        EngineSettings {
            max_context: self.context.map(NonZeroUsize::get),
            max_waiting_requests: self.queue.unwrap_or(usize::MAX),
            max_running_requests: self.parallel.unwrap_or(defaults.max_running_requests),
            ..defaults
        }
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

/// Checks `--context` against the context length of the model.
///
/// # Errors
/// A usage error when it is longer.
pub fn check_context(context: NonZeroUsize, limit: usize) -> Result<()> {
    if context.get() <= limit {
        return Ok(());
    }
    Err(usage(format!("--context {context}: this model supports at most {limit}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parse(arguments: &[&str]) -> Result<LoadArgs, clap::Error> {
        Line::try_parse_from(["lm"].iter().chain(arguments)).map(|line| line.load)
    }

    #[test]
    fn pack_cache_is_off_named_or_default() {
        let folder = |arguments: &[&str]| {
            let load = parse(&[&["--quantize", "q4"], arguments].concat()).expect("is taken");
            load.pack_cache().expect("HOME is set where tests run")
        };
        assert_eq!(folder(&[]), None);
        assert_eq!(folder(&["--pack-cache=here"]), Some(PathBuf::from("here")));
        assert!(folder(&["--pack-cache"]).expect("there is one").ends_with("lm/packed"));
        assert!(parse(&["--pack-cache"]).is_err(), "nothing is packed to keep");
    }

    #[test]
    fn invalid_values_list_the_valid_ones() {
        for (arguments, expected) in [
            (["--quantize", "f16"], "known formats: q8, q4"),
            (["--device", "tpu"], "cpu"),
            (["--threads", "0"], "1..=1024"),
            (["--threads", "-2"], "1..=1024"),
            (["--memory", "-1"], "expected a number of bytes"),
        ] {
            let error = parse(&arguments).map(drop).expect_err("is refused");
            assert!(error.to_string().contains(expected), "{arguments:?}: {error}");
        }
    }
}
