//! The plan of software prefetches in use.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::processor::is_intel;
use crate::error::{Error, Result, find_named};

/// The environment variable that forces a [`PrefetchPlan`].
const VARIABLE: &str = "LM_PREFETCH";

/// True while the plan in use is [`PrefetchPlan::Far`].
static IS_FAR: AtomicBool = AtomicBool::new(false);
/// True once a program or the environment has chosen the plan.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Plan of the software prefetches of quantised weights that one row is multiplied by, which decides the
/// speed of decoding on x86-64. Other processors have none.
///
/// Results have the same bits with each. One row of 4-bit weights from memory: EPYC (Zen 4) 41 to 53 GB/s
/// near and 35 to 39 far, Xeon with AMX 11 to 12 near and 18 to 21 far.
///
/// # Examples
/// ```
/// use lm_kernels::PrefetchPlan;
/// let plan: PrefetchPlan = "far".parse()?;
/// plan.set();
/// # if std::env::var_os("LM_PREFETCH").is_none() {
/// assert_eq!(PrefetchPlan::current(), PrefetchPlan::Far);
/// # }
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrefetchPlan {
    /// 256 bytes ahead and without gaps, so that the processor's own prefetching continues. The default of
    /// all processors but Intel's.
    Near,
    /// 12 KiB ahead to the L2 cache and 4 KiB ahead to the L1 cache, as for several rows. The default of
    /// Intel's processors.
    Far,
}

impl PrefetchPlan {
    /// All plans.
    pub const ALL: [PrefetchPlan; 2] = [PrefetchPlan::Near, PrefetchPlan::Far];

    /// Name, which [`FromStr`] and `LM_PREFETCH` read.
    pub fn name(self) -> &'static str {
        match self {
            PrefetchPlan::Near => "near",
            PrefetchPlan::Far => "far",
        }
    }

    /// Returns the plan in use: the one that `LM_PREFETCH` forces, or the last one that was
    /// [set](PrefetchPlan::set), or the processor's default.
    ///
    /// # Panics
    /// When `LM_PREFETCH` names no plan; [`PrefetchPlan::requested`] returns the error.
    pub fn current() -> Self {
        initialize();
        if is_far() { PrefetchPlan::Far } else { PrefetchPlan::Near }
    }

    /// Returns the plan that `LM_PREFETCH` forces, if it is set and not empty.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn requested() -> Result<Option<Self>> {
        let name = env::var_os(VARIABLE).filter(|name| !name.is_empty());
        name.map(|name| name.to_string_lossy().parse()).transpose()
    }

    /// Returns the default plan of this processor, by its vendor.
    pub fn default_of_processor() -> Self {
        if is_intel() { PrefetchPlan::Far } else { PrefetchPlan::Near }
    }

    /// Returns true if the plan has no effect or is not to be measured: on a processor without software
    /// prefetches, or once it is forced or was set.
    pub fn is_settled() -> bool {
        initialize();
        !cfg!(target_arch = "x86_64") || IS_CHOSEN.load(Ordering::Relaxed)
    }

    /// Uses this plan from now on, in the whole process. Without effect if `LM_PREFETCH` forces one.
    pub fn set(self) {
        self.try_out();
        IS_CHOSEN.store(true, Ordering::Relaxed);
    }

    /// Uses this plan for a measurement: as [`set`](PrefetchPlan::set), but the plan is not settled by it.
    pub fn try_out(self) {
        initialize();
        if !matches!(Self::requested(), Ok(Some(_))) {
            self.store();
        }
    }

    fn store(self) {
        IS_FAR.store(self == PrefetchPlan::Far, Ordering::Relaxed);
    }
}

impl fmt::Display for PrefetchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PrefetchPlan {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find_named("prefetch plan", name, &PrefetchPlan::ALL, PrefetchPlan::name)
    }
}

/// Reads the environment and the processor's vendor, once.
pub(super) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| match PrefetchPlan::requested() {
        Ok(Some(plan)) => {
            plan.store();
            IS_CHOSEN.store(true, Ordering::Relaxed);
        }
        Ok(None) => PrefetchPlan::default_of_processor().store(),
        Err(error) => panic!("{error}"),
    });
}

/// Returns true if the plan in use is [`PrefetchPlan::Far`]; a kernel has run before, which read the
/// environment.
#[inline(always)]
pub(super) fn is_far() -> bool {
    IS_FAR.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "starts a process")]
    fn forced_plan_stays() {
        if let Some(plan) = PrefetchPlan::requested().expect("a plan") {
            PrefetchPlan::ALL.into_iter().for_each(PrefetchPlan::set);
            assert_eq!(PrefetchPlan::current(), plan);
            return;
        }
        for plan in PrefetchPlan::ALL {
            // A process of its own: the variable is read once.
            let mut child = Command::new(env::current_exe().unwrap());
            let child = child.args(["--exact", "host::prefetch_plan::tests::forced_plan_stays"]);
            let output = child.env(VARIABLE, plan.name()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        }
    }

    #[test]
    fn plans_have_names() {
        for plan in PrefetchPlan::ALL {
            assert_eq!(plan.to_string().parse::<PrefetchPlan>().ok(), Some(plan));
        }
        let error = "middle".parse::<PrefetchPlan>().expect_err("no plan");
        assert_eq!(error.to_string(), "unknown prefetch plan `middle`, expected one of: near, far");
    }
}
