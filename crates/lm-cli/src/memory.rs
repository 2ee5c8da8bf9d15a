//! Memory limit of a model, and the choices that fit it.

use std::path::Path;

use anyhow::Result;
use lm_model::{Device, LoadOptions, ModelFolder};
use lm_session::{Error, MemoryPlan, MemoryRequest, WeightChoice, available_memory};

use crate::args::{LoadArgs, RunArgs};
use crate::size;

/// Maximum memory, in bytes, that a model may need.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    bytes: u64,
}

impl Memory {
    /// Returns the limit of `--memory`, or the available memory. `None` if nothing is checked: for the
    /// embedded model without `--memory`, on a GPU, whose memory is unknown, and where the system does not
    /// report it.
    pub fn of(model: Option<&Path>, args: &LoadArgs) -> Option<Self> {
        let is_checked = args.memory.is_some() || model.is_some();
        let bytes = args.memory.or_else(available_memory)?;
        (is_checked && args.device.resolved() != Device::Gpu).then_some(Self { bytes })
    }

    /// Chooses the unspecified values so that the model fits; prints the choice on standard error.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] if the smallest choice does not fit; those of the headers of the model's files.
    pub fn plan(
        self,
        folder: &ModelFolder,
        run: &RunArgs,
        weights: WeightChoice,
    ) -> Result<MemoryPlan, Error> {
        let LoadArgs { quantize, dtype, kv, .. } = run.load;
        let plan = MemoryPlan::choose(&folder.footprint()?, &request(run, weights), self.bytes)?;
        let all_given = quantize.or(dtype).is_some() && kv.is_some() && run.context.is_some();
        if !all_given {
            eprintln!("{}", self.line(folder.name(), &plan));
        }
        Ok(plan)
    }

    /// Rejects a model that does not fit even with the smallest cache.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn check(self, folder: &ModelFolder, options: &LoadOptions) -> Result<(), Error> {
        let plan = MemoryPlan::with(&folder.footprint()?, options.quantization, options.kv_dtype, 1);
        match plan.needed_bytes > self.bytes {
            true => Err(plan.does_not_fit(self.bytes)),
            false => Ok(()),
        }
    }

    fn line(self, name: &str, plan: &MemoryPlan) -> String {
        let weights = plan.quantization.map_or("as stored".to_owned(), |format| format!("in {format}"));
        let [likely, needed, available] =
            [plan.likely_bytes, plan.needed_bytes, self.bytes].map(size::format_bytes);
        let MemoryPlan { context_tokens, cache_tokens, kv_dtype, .. } = plan;
        // Several sessions share a cache that is larger than one context.
        let cache = if *cache_tokens >= 2 * context_tokens {
            format!(" ({cache_tokens} tokens)")
        } else {
            String::new()
        };
        format!(
            "memory: {name} {weights}, {context_tokens} tokens of context, cache in {kv_dtype}{cache}: about \
             {likely}, at most {needed} of {available}"
        )
    }
}

/// Builds the [`MemoryRequest`] of the command line; `weights` applies without `--quantize` and `--dtype`.
pub fn request(run: &RunArgs, weights: WeightChoice) -> MemoryRequest {
    let LoadArgs { quantize, dtype, kv, .. } = run.load;
    MemoryRequest {
        weights: quantize.or(dtype).map_or(weights, WeightChoice::In),
        kv_dtype: kv,
        context_tokens: run.context.map(Into::into),
    }
}
