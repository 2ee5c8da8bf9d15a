//! Measured figures and their bounds.

use std::fmt;

use serde_json::{Value, json};

pub const HEADING: &str = "scenario     | figure                                   |        value          |  bound\n\
     -------------|------------------------------------------|-----------------------|---------";

/// A measured value.
pub struct Figure {
    scenario: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    bound: Option<Bound>,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    pub fn new(scenario: &'static str, name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { scenario, name: name.into(), value, unit, bound: None }
    }

    /// Creates a count.
    pub fn count(scenario: &'static str, name: impl Into<String>, value: usize) -> Self {
        Self::new(scenario, name, value as f64, "")
    }

    pub fn at_least(self, bound: f64) -> Self {
        Self { bound: Some(Bound::AtLeast(bound)), ..self }
    }

    pub fn at_most(self, bound: f64) -> Self {
        Self { bound: Some(Bound::AtMost(bound)), ..self }
    }

    /// Returns true if the value is out of its bound, or is none.
    pub fn is_missed(&self) -> bool {
        match self.bound {
            Some(Bound::AtLeast(bound)) => self.value.is_nan() || self.value < bound,
            Some(Bound::AtMost(bound)) => self.value.is_nan() || self.value > bound,
            None => false,
        }
    }

    pub fn json(&self) -> Value {
        let (at_least, at_most) = match self.bound {
            Some(Bound::AtLeast(bound)) => (Some(bound), None),
            Some(Bound::AtMost(bound)) => (None, Some(bound)),
            None => (None, None),
        };
        let Self { scenario, name, value, unit, .. } = self;
        json!({"scenario": scenario, "figure": name, "value": value, "unit": unit, "at_least": at_least, "at_most": at_most})
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, name, value, unit, bound } = self;
        let digits = match unit {
            &"" => 0,
            _ if value.abs() < 10.0 => 2,
            _ => 1,
        };
        write!(f, "{scenario:<12} | {name:<40} | {value:>12.digits$} {unit:<8} | ")?;
        match bound {
            Some(Bound::AtLeast(bound)) => write!(f, "≥ {bound}")?,
            Some(Bound::AtMost(bound)) => write!(f, "≤ {bound}")?,
            None => {}
        }
        if self.is_missed() { f.write_str(" missed") } else { Ok(()) }
    }
}

/// Percentile by nearest rank; NaN for an empty list.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_by_rank() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99)), (100.0, 198.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn figure_out_of_its_bound_is_missed() {
        let figure = |value| Figure::new("streams", "errors", value, "");
        assert!(figure(1.0).at_most(0.0).is_missed() && !figure(0.0).at_most(0.0).is_missed());
        assert!(figure(0.0).at_least(1.0).is_missed() && !figure(1.0).is_missed());
        assert!(figure(f64::NAN).at_most(1.0).is_missed());
        assert!(figure(1.0).at_most(0.0).to_string().ends_with("≤ 0 missed"));
    }
}
