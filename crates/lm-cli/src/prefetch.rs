//! Prefetch plan of this processor, kept from the first large model that was loaded.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use lm_kernels::PrefetchPlan;
use lm_kernels::host::processor_name;
use serde::{Deserialize, Serialize};

use crate::user_folders;

/// Maximum size of the file.
const MAX_BYTES: u64 = 4096;

/// Contents of the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    processor: String,
    plan: String,
}

/// Origin of the plan in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `LM_PREFETCH`.
    Forced,
    /// A measurement of an earlier run.
    Measured,
    /// The processor's vendor.
    Default,
}

/// Uses the plan that an earlier run has measured on this processor, if there is one.
pub fn restore() -> Origin {
    if !matches!(PrefetchPlan::requested(), Ok(None)) {
        return Origin::Forced;
    }
    let measured = read().filter(|measured| Some(&measured.processor) == processor_name().as_ref());
    match measured.and_then(|measured| measured.plan.parse::<PrefetchPlan>().ok()) {
        Some(plan) => {
            plan.set();
            Origin::Measured
        }
        None => Origin::Default,
    }
}

/// Keeps the plan in use, if this run has measured it. Without a folder for it, it is measured again.
pub fn store() {
    let forced = !matches!(PrefetchPlan::requested(), Ok(None));
    let (Some(file), Some(processor)) = (file(), processor_name()) else { return };
    if forced || !PrefetchPlan::is_settled() {
        return;
    }
    let measured = Measured { processor, plan: PrefetchPlan::current().to_string() };
    if read().as_ref() != Some(&measured)
        && let Err(error) = write(&file, &measured)
    {
        tracing::debug!(%error, file = %file.display(), "the prefetch plan is not kept");
    }
}

/// The file, in the user's cache folder.
pub fn file() -> Option<PathBuf> {
    user_folders::cache().map(|caches| caches.join("lm").join("prefetch.json"))
}

fn read() -> Option<Measured> {
    let file = file().filter(|file| file.is_file())?;
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn write(file: &PathBuf, measured: &Measured) -> io::Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    let part = file.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, serde_json::to_string(measured)? + "\n")?;
    fs::rename(part, file)
}
