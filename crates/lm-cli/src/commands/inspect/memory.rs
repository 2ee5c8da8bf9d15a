//! Memory requirements of a model, by quantisation, cache and context.

use std::fmt;

use lm_model::{Footprint, KvDtype, WeightFormat};
use lm_session::{MemoryPlan, available_memory};
use serde_json::{Value, json};

use crate::size;

/// Common context lengths, if the model supports them; its longest one is added.
const CONTEXTS: [usize; 3] = [4096, 16_384, 65_536];
const CACHES: [KvDtype; 2] = [KvDtype::F16, KvDtype::Q8];

/// Table of sizes, a row for each format of weights and cache.
pub struct MemoryTable {
    available: Option<u64>,
    rows: Vec<Vec<MemoryPlan>>,
}

impl MemoryTable {
    /// Creates the table of a model on this machine.
    pub fn of(footprint: &Footprint) -> Self {
        let limit = footprint.context_len();
        let contexts: Vec<_> = CONTEXTS.into_iter().filter(|&tokens| tokens < limit).chain([limit]).collect();
        let mut formats = vec![None];
        if footprint.quantized().is_none() {
            formats.extend([Some(WeightFormat::Q8), Some(WeightFormat::Q4)]);
        }
        let row = |format, cache| {
            let plan = |&tokens: &usize| MemoryPlan::with(footprint, format, cache, tokens);
            contexts.iter().map(plan).collect()
        };
        let rows = formats.into_iter().flat_map(|format| CACHES.map(|cache| row(format, cache))).collect();
        Self { available: available_memory(), rows }
    }

    /// Converts to JSON: one object for each cell, and the available memory.
    pub fn to_json(&self) -> Value {
        let cells = self.rows.iter().flatten().map(|plan| {
            json!({
                "quantization": plan.quantization.map(|format| format.to_string()),
                "kv": plan.kv_dtype.to_string(),
                "context": plan.context_tokens,
                "weight_bytes": plan.weight_bytes,
                "cache_bytes": plan.cache_bytes,
                "needed_bytes": plan.needed_bytes,
                "fits": self.available.map(|available| plan.needed_bytes <= available),
            })
        });
        json!({"available_bytes": self.available, "needs": cells.collect::<Vec<_>>()})
    }
}

impl fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let available = self.available.map_or("unknown".to_owned(), size::format_bytes);
        write!(
            f,
            "  memory        {available} available; below, what is needed in all with a cache of so many tokens"
        )?;
        let too_much =
            |plan: &MemoryPlan| self.available.is_some_and(|available| plan.needed_bytes > available);
        let some_is = self.rows.iter().flatten().any(too_much);
        writeln!(f, "{}", if some_is { ", * more than available" } else { "" })?;
        write!(f, "    {:<20}{:>10}", "weights, cache", "weights")?;
        for plan in self.rows.iter().take(1).flatten() {
            write!(f, "{:>16}", format!("{} tokens", plan.context_tokens))?;
        }
        writeln!(f)?;
        for row in &self.rows {
            let Some(first) = row.first() else { continue };
            let weights = first.quantization.map_or("as stored".to_owned(), |format| format.to_string());
            let label = format!("{weights}, {}", first.kv_dtype);
            write!(f, "    {label:<20}{:>10}", size::format_bytes(first.weight_bytes))?;
            for plan in row {
                let mark = if too_much(plan) { "*" } else { "" };
                write!(f, "{:>16}", format!("{mark}{}", size::format_bytes(plan.needed_bytes)))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
