//! Temperature scaling.

use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Divides logits by the temperature. The maximum is subtracted first, which changes no probability and keeps
/// very low temperatures from overflowing.
#[derive(Debug)]
struct Temperature(f32);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.temperature != 1.0).then(|| Box::new(Temperature(params.temperature)) as _)
}

impl LogitsFilter for Temperature {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        if let Some(max) = logits.max() {
            logits.update(|value| (value - max) / self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn differences_are_divided_by_temperature() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (temperature, row, expected) in [
            (0.5, &[1.0, 3.0][..], &[(0, -4.0), (1, 0.0)][..]),
            (2.0, &[1.0, MASKED, 3.0], &[(0, -1.0), (1, MASKED), (2, 0.0)]),
            (1.0, &[1.0, 3.0], &[(0, 1.0), (1, 3.0)]),
            (1e-40, &[1.0, 3.0], &[(0, MASKED), (1, 0.0)]),
            (0.5, &[MASKED], &[(0, MASKED)]),
        ] {
            let params = SamplerParams { temperature, ..SamplerParams::default() };
            check_filter(filter, params, row, expected);
        }
    }
}
