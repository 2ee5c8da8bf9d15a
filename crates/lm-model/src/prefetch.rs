//! Choice of the prefetch plan of a processor by measurement.

use std::time::{Duration, Instant};

use lm_kernels::PrefetchPlan;

use crate::batch::Embeddings;
use crate::causal_lm::CausalLm;
use crate::error::Result;

/// Most pairs of measurements.
const MAX_TURNS: usize = 9;
/// Fewest pairs that a choice is made from.
const MIN_TURNS: usize = 4;
/// Ratio of times up to which another plan than the processor's default is taken, if each pair has it: other
/// programs disturb some of the pairs.
const CLEARLY_FASTER: f64 = 0.9;

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
/// [sets](PrefetchPlan::set) the faster one: the processor's default unless another takes at most 90 % of its
/// time in every turn. The results of the model do not depend on the choice.
///
/// Returns `None`, with the plan as it was, if `limit` is too short for four turns. The head should be
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
    seconds()?; // It also maps pages and wakes the threads.
    let mut measured = PrefetchPlan::ALL.map(|_| Vec::new());
    let mut turn = Duration::ZERO;
    while measured[0].len() < MAX_TURNS && started.elapsed() + turn < limit {
        let of_turn = Instant::now();
        for (plan, measured) in PrefetchPlan::ALL.into_iter().zip(&mut measured) {
            plan.try_out();
            let outcome = seconds();
            measured.push(outcome.inspect_err(|_| before.try_out())?);
        }
        turn = of_turn.elapsed();
    }
    if measured[0].len() < MIN_TURNS {
        before.try_out();
        return Ok(None);
    }
    let plan = faster(PrefetchPlan::default_of_processor(), &measured);
    plan.set();
    let (turns, elapsed) = (measured[0].len(), started.elapsed());
    Ok(Some(PrefetchMeasurement { plan, seconds: measured.map(median), turns, elapsed }))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The plan that is clearly faster than the default in every turn, or the default. `seconds` are those of
/// [`PrefetchPlan::ALL`].
fn faster(default: PrefetchPlan, seconds: &[Vec<f64>; PrefetchPlan::ALL.len()]) -> PrefetchPlan {
    let of = |plan: PrefetchPlan| &seconds[usize::from(plan != PrefetchPlan::ALL[0])];
    let mut others = PrefetchPlan::ALL.into_iter().filter(|&plan| plan != default);
    let is_faster = |plan: &PrefetchPlan| {
        of(*plan).iter().zip(of(default)).all(|(other, default)| *other <= CLEARLY_FASTER * default)
    };
    others.find(is_faster).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrefetchPlan::{Far, Near};

    #[test]
    fn default_is_kept_unless_another_plan_is_clearly_faster_in_every_turn() {
        let plan = |default, near: &[f64], far: &[f64]| faster(default, &[near.to_vec(), far.to_vec()]);
        assert_eq!(plan(Near, &[1.0, 1.0], &[0.95, 0.95]), Near);
        assert_eq!(plan(Near, &[1.0, 1.0], &[0.5, 0.9]), Far);
        assert_eq!(plan(Near, &[1.0, 1.0, 9.0], &[0.5, 0.95, 0.5]), Near, "one turn is level");
        assert_eq!(plan(Far, &[0.95, 0.5], &[1.0, 1.0]), Far);
        assert_eq!(plan(Far, &[0.5, 0.5], &[1.0, 1.0]), Near);
        assert_eq!(plan(Far, &[2.0, 2.0], &[1.0, 1.0]), Far);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
