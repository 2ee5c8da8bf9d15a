//! Choice of the prefetch plan of a processor by measurement.

use std::time::{Duration, Instant};

use lm_kernels::PrefetchPlan;

use crate::batch::Embeddings;
use crate::causal_lm::CausalLm;
use crate::error::Result;

/// Most pairs of measurements.
const MAX_TURNS: usize = 9;
/// Fewest pairs that a choice is made from.
const MIN_TURNS: usize = 3;
/// Ratio of times below which another plan than the processor's default is taken.
const CLEARLY_FASTER: f64 = 0.95;

/// Outcome of [`choose_prefetch_plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct PrefetchMeasurement {
    /// The plan chosen, which is in use now.
    pub plan: PrefetchPlan,
    /// Seconds of a product of one row and the output head with each of [`PrefetchPlan::ALL`], medians.
    pub seconds: [f64; PrefetchPlan::ALL.len()],
    /// Number of measurements with each plan.
    pub turns: usize,
    /// Duration of the whole measurement.
    pub elapsed: Duration,
}

/// Measures one row times the model's output head with each [`PrefetchPlan`], by turns within `limit`, and
/// [sets](PrefetchPlan::set) the faster one: the processor's default unless another takes at most 95 % of its
/// time. The results of the model do not depend on the choice.
///
/// Returns `None`, with the plan as it was, if `limit` is too short for three turns. The head should be
/// larger than the processor's caches: measure models of more than 100 MB.
///
/// # Errors
/// Those of [`CausalLm::head`].
pub fn choose_prefetch_plan(model: &dyn CausalLm, limit: Duration) -> Result<Option<PrefetchMeasurement>> {
    let started = Instant::now();
    let width = model.info().hidden_size;
    let seconds = || -> Result<f64> {
        let row = Embeddings { values: vec![1.0; width], hidden_size: width };
        let started = Instant::now();
        model.head(row)?;
        Ok(started.elapsed().as_secs_f64())
    };
    let before = PrefetchPlan::current();
    let first = seconds()?; // It also maps pages and wakes the threads.
    let turns = (limit.saturating_sub(started.elapsed()).as_secs_f64() / (2.0 * first)) as usize;
    if turns < MIN_TURNS {
        return Ok(None);
    }
    let mut measured = PrefetchPlan::ALL.map(|_| Vec::new());
    for _ in 0..turns.min(MAX_TURNS) {
        for (plan, measured) in PrefetchPlan::ALL.into_iter().zip(&mut measured) {
            plan.set();
            let outcome = seconds();
            measured.push(outcome.inspect_err(|_| before.set())?);
        }
    }
    let turns = measured[0].len();
    let medians = measured.map(median);
    let plan = faster(PrefetchPlan::default_of_processor(), medians);
    plan.set();
    Ok(Some(PrefetchMeasurement { plan, seconds: medians, turns, elapsed: started.elapsed() }))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The plan of the shortest time, if it is clearly shorter than the default's.
fn faster(default: PrefetchPlan, seconds: [f64; PrefetchPlan::ALL.len()]) -> PrefetchPlan {
    let of = |plan: PrefetchPlan| {
        PrefetchPlan::ALL.iter().zip(seconds).find(|(other, _)| **other == plan).map_or(f64::MAX, |(_, s)| s)
    };
    let fastest = PrefetchPlan::ALL.into_iter().min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(default);
    if of(fastest) <= CLEARLY_FASTER * of(default) { fastest } else { default }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrefetchPlan::{Far, Near};

    #[test]
    fn default_is_kept_unless_another_plan_is_clearly_faster() {
        assert_eq!(faster(Near, [1.0, 0.97]), Near);
        assert_eq!(faster(Near, [1.0, 0.90]), Far);
        assert_eq!(faster(Far, [0.97, 1.0]), Far);
        assert_eq!(faster(Far, [0.5, 1.0]), Near);
        assert_eq!(faster(Far, [2.0, 1.0]), Far);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
