//! Measurement of the processor's prefetch plan, by the first large model of a process.

use std::time::Duration;

use lm_model::{CausalLm, Device, PrefetchPlan, choose_prefetch_plan};

/// Smallest model that is measured: smaller ones are in the caches.
const MIN_BYTES: u64 = 100_000_000;
/// Time limit of the measurement.
const LIMIT: Duration = Duration::from_millis(50);

/// Chooses the prefetch plan for the rest of the process, unless the program or `LM_PREFETCH` has chosen one.
pub(super) fn settle(model: &dyn CausalLm) {
    let info = model.info();
    if info.device != Device::Cpu || info.weight_bytes < MIN_BYTES || PrefetchPlan::is_settled() {
        return;
    }
    match choose_prefetch_plan(model, LIMIT) {
        Ok(Some(measured)) => tracing::debug!(?measured, "the prefetch plan was measured"),
        Ok(None) => tracing::debug!("the prefetch plan was not measured: the output head takes too long"),
        Err(error) => tracing::debug!(%error, "the prefetch plan was not measured"),
    }
}
