//! `lm inspect --cpu`: the processor and its kernels.

use std::fmt;

use lm_kernels::host::processor_name;
use lm_kernels::{Isa, Pool, PrefetchPlan};
use serde_json::{Value, json};

use crate::events;
use crate::prefetch::{self, Origin};

/// Processor, kernels and prefetches.
pub struct Cpu {
    origin: Origin,
}

impl Cpu {
    /// Reads the environment and the measurement of an earlier run.
    ///
    /// # Errors
    /// An unknown name in `LM_CPU` or `LM_PREFETCH`.
    pub fn read() -> lm_kernels::Result<Self> {
        Isa::requested()?;
        PrefetchPlan::requested()?;
        Ok(Self { origin: prefetch::restore() })
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let supported: Vec<&str> = Isa::supported().iter().map(|isa| isa.name()).collect();
        json!({
            "version": events::VERSION, "processor": processor_name(), "threads": Pool::global().threads(), "kernels": Isa::current().name(),
            "supported": supported, "prefetch": PrefetchPlan::current().name(), "prefetch_origin": self.origin(),
        })
    }

    fn origin(&self) -> &'static str {
        match self.origin {
            Origin::Forced => "forced",
            Origin::Measured => "measured",
            Origin::Default => "default",
        }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let supported: Vec<&str> = Isa::supported().iter().map(|isa| isa.name()).collect();
        writeln!(f, "processor   {}", processor_name().unwrap_or_else(|| "unknown".to_owned()))?;
        writeln!(f, "threads     {}", Pool::global().threads())?;
        writeln!(f, "kernels     {} of {}; LM_CPU forces one", Isa::current(), supported.join(", "))?;
        write!(f, "prefetches  {}, ", PrefetchPlan::current())?;
        match (self.origin, prefetch::file()) {
            (Origin::Forced, _) => writeln!(f, "forced by LM_PREFETCH"),
            (Origin::Measured, Some(file)) => writeln!(f, "measured by an earlier run: {}", file.display()),
            _ => writeln!(
                f,
                "the vendor's default; measured when a model of over 100 MB is loaded, if that takes 50 ms at most"
            ),
        }
    }
}
