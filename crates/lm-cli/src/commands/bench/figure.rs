//! One measured figure beside its limit.

use std::fmt;

use serde::Serialize;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Metric {
    /// Seconds from a folder to a model that is ready
    Load,
    /// Prompt tokens a second
    Prefill,
    /// Tokens a second after the first; of sequences that run together, all their tokens over the whole time, prompts included
    Decode,
    /// Milliseconds to the first token of a second turn
    SecondTurn,
    /// Memory after the first token
    Resident,
    /// Most memory until then
    Peak,
    /// Rate at which the memory is read
    DramRate,
    /// Rate of the products that the weights' format needs
    MatrixRate,
}

impl Metric {
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Load => "s",
            Metric::Prefill | Metric::Decode => "tokens/s",
            Metric::SecondTurn => "ms",
            Metric::Resident | Metric::Peak => "MB",
            Metric::DramRate => "GB/s",
            Metric::MatrixRate => "TOP/s",
        }
    }

    /// Whether less is better.
    fn is_cost(self) -> bool {
        matches!(self, Metric::Load | Metric::SecondTurn | Metric::Resident | Metric::Peak)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Metric::Load => "load",
            Metric::Prefill => "prefill",
            Metric::Decode => "decode",
            Metric::SecondTurn => "second_turn",
            Metric::Resident => "resident",
            Metric::Peak => "peak",
            Metric::DramRate => "dram_rate",
            Metric::MatrixRate => "matrix_rate",
        })
    }
}

/// A median and the circumstances it was taken in.
#[derive(Debug, Serialize)]
pub struct Figure {
    pub metric: Metric,
    pub weights: String,
    pub cpu: String,
    pub context: usize,
    pub sequences: usize,
    pub kv: String,
    pub value: f64,
    pub unit: &'static str,
    /// What the value could be at best.
    pub limit: Option<f64>,
    /// The distance between the largest and the smallest run, as a part of the median.
    pub swing: f64,
}

/// From where on a swing is marked.
const UNSTEADY: f64 = 0.1;

impl Figure {
    pub fn heading() -> String {
        format!(
            "{:<12} {:>7} {:>9} {:>12} {:<8} {:>10} {:>6} {:>6}",
            "", "context", "sequences", "", "", "limit", "", "swing"
        )
    }

    /// How near the limit the value is: 1 is there.
    fn share_of_limit(&self) -> Option<f64> {
        let limit = self.limit?;
        Some(if self.metric.is_cost() { limit / self.value } else { self.value / limit })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, context, sequences, value, unit, .. } = self;
        let digits = if *value < 10.0 { 3 } else { 1 };
        write!(f, "{metric:<12} {context:>7} {sequences:>9} {value:>12.digits$} {unit:<8} ")?;
        match (self.limit, self.share_of_limit()) {
            (Some(limit), Some(share)) => write!(f, "{limit:>10.digits$} {:>4.0} %", share * 100.0)?,
            _ => write!(f, "{:>17}", "")?,
        }
        let mark = if self.swing > UNSTEADY { " unsteady" } else { "" };
        write!(f, " {:>4.0} %{mark}", self.swing * 100.0)
    }
}

/// What repeated runs gave.
#[derive(Debug, Default)]
pub struct Samples(Vec<f64>);

impl From<Vec<f64>> for Samples {
    fn from(samples: Vec<f64>) -> Self {
        Self(samples)
    }
}

impl Samples {
    pub fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// The middle value; of an even number the upper one. NaN of none.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The distance between the largest and the smallest, as a part of the median.
    pub fn swing(&self) -> f64 {
        let largest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        (largest - smallest) / self.median()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_and_the_swing_all_of_the_range() {
        let samples = Samples::from(vec![3.0, 1.0, 2.0]);
        assert_eq!((samples.median(), samples.swing()), (2.0, 1.0));
        assert_eq!(Samples::from(vec![4.0, 1.0]).median(), 4.0);
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn costs_are_near_their_limit_when_they_are_small() {
        let figure = |metric: Metric, value| Figure {
            metric,
            weights: "q4".into(),
            cpu: "avx2".into(),
            context: 0,
            sequences: 1,
            kv: "f16".into(),
            value,
            unit: metric.unit(),
            limit: Some(100.0),
            swing: 0.2,
        };
        assert_eq!(figure(Metric::Decode, 50.0).share_of_limit(), Some(0.5));
        assert_eq!(figure(Metric::SecondTurn, 200.0).share_of_limit(), Some(0.5));
        assert!(figure(Metric::Decode, 50.0).to_string().ends_with("50 %   20 % unsteady"));
    }
}
