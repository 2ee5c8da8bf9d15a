//! The memory that a model may take, and what is chosen for it.

use std::path::Path;

use anyhow::Result;
use lm_model::{Device, LoadOptions, ModelFolder};
use lm_session::{Error, MemoryPlan, MemoryRequest, WeightChoice, available_memory};

use crate::args::{LoadArgs, RunArgs};
use crate::size;

/// A bound on what a model may take.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    bytes: u64,
}

impl Memory {
    /// What `--memory` says, or what is available. None where nothing is to be checked: for the embedded model, on a GPU, whose
    /// memory is not known, and where the system does not tell.
    pub fn of(model: Option<&Path>, args: &LoadArgs) -> Option<Self> {
        let is_checked = args.memory.is_some() || model.is_some();
        let bytes = args.memory.or_else(available_memory)?;
        (is_checked && args.device != Device::Gpu).then_some(Self { bytes })
    }

    /// What fits, of what is given and what is not; a line on standard error says what was chosen.
    pub fn plan(
        self,
        folder: &ModelFolder,
        run: &RunArgs,
        weights: WeightChoice,
    ) -> Result<MemoryPlan, Error> {
        let LoadArgs { quantize, dtype, kv, .. } = run.load;
        let request = MemoryRequest {
            weights: quantize.or(dtype).map_or(weights, WeightChoice::In),
            kv_dtype: kv,
            context_tokens: run.context.map(Into::into),
        };
        let plan = MemoryPlan::choose(&folder.footprint()?, &request, self.bytes)?;
        let all_given = quantize.or(dtype).is_some() && kv.is_some() && run.context.is_some();
        if !all_given {
            eprintln!("{}", self.line(folder.name(), &plan));
        }
        Ok(plan)
    }

    /// Refuses to load what cannot fit, with the smallest cache.
    pub fn check(self, folder: &ModelFolder, options: &LoadOptions) -> Result<(), Error> {
        let plan = MemoryPlan::with(&folder.footprint()?, options.quantization, options.kv_dtype, 1);
        match plan.needed_bytes > self.bytes {
            true => Err(Error::DoesNotFit { plan, available_bytes: self.bytes }),
            false => Ok(()),
        }
    }

    fn line(self, name: &str, plan: &MemoryPlan) -> String {
        let weights = plan.quantization.map_or("as stored".to_owned(), |format| format!("in {format}"));
        let (needed, available) = (size::shown(plan.needed_bytes), size::shown(self.bytes));
        let (tokens, kv) = (plan.context_tokens, plan.kv_dtype);
        format!(
            "memory: {name} {weights}, {tokens} tokens of context, cache in {kv}: at most {needed} of {available}"
        )
    }
}
