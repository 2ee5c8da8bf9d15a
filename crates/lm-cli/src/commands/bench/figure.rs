//! A measured figure and its limit.

use std::fmt;

use serde::Serialize;

/// Measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Metric {
    /// Seconds from a folder to a model that is ready
    Load,
    /// Milliseconds to the first token of the first prompt, of 32 tokens, after the load. The limit is that
    /// of later ones
    FirstToken,
    /// Prompt tokens a second
    Prefill,
    /// Tokens a second after the first; of sequences that run together, all their tokens over the whole time,
    /// prompts included
    Decode,
    /// Milliseconds to the first token of a second turn
    SecondTurn,
    /// Milliseconds between two tokens of eight streams while a prompt of 2,000 tokens arrives, and while a
    /// tool call with a new grammar does: the median, the 99th percentile and the largest. The limit is the
    /// time budget of a step
    Gap,
    /// 99th percentile of `gap`
    GapP99,
    /// Largest `gap`
    GapMax,
    /// Milliseconds in which an image is encoded (`--image`); its context is the number of its rows
    Image,
    /// Prompt tokens a second of an image and 32 tokens, the encoding included (`--image`)
    ImagePrefill,
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
            Metric::Prefill | Metric::Decode | Metric::ImagePrefill => "tokens/s",
            Metric::FirstToken
            | Metric::Image
            | Metric::SecondTurn
            | Metric::Gap
            | Metric::GapP99
            | Metric::GapMax => "ms",
            Metric::Resident | Metric::Peak => "MB",
            Metric::DramRate => "GB/s",
            Metric::MatrixRate => "TOP/s",
        }
    }

    /// Returns true for a metric that needs an image.
    pub fn is_of_image(self) -> bool {
        matches!(self, Metric::Image | Metric::ImagePrefill)
    }

    /// Ratio of a value and its limit, inverted for costs: 1 is at the limit.
    pub fn share(self, sample: &Sample) -> Option<f64> {
        let limit = sample.limit?;
        let is_rate = matches!(self, Metric::Prefill | Metric::Decode | Metric::ImagePrefill);
        Some(if is_rate { sample.value / limit } else { limit / sample.value })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Metric::Load => "load",
            Metric::FirstToken => "first_token",
            Metric::Prefill => "prefill",
            Metric::Decode => "decode",
            Metric::SecondTurn => "second_turn",
            Metric::Gap => "gap",
            Metric::GapP99 => "gap_p99",
            Metric::GapMax => "gap_max",
            Metric::Image => "image",
            Metric::ImagePrefill => "image_prefill",
            Metric::Resident => "resident",
            Metric::Peak => "peak",
            Metric::DramRate => "dram_rate",
            Metric::MatrixRate => "matrix_rate",
        })
    }
}

/// A median and its measuring conditions.
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
    /// Best possible value: the median over the runs, each with the machine's rates around it.
    pub limit: Option<f64>,
    /// Ratio to the limit: 1 is at the limit. The median over the runs, which on an unsteady machine says
    /// more than the value.
    pub share: Option<f64>,
    /// Difference between the largest and the smallest run, relative to the median; `None` for a single run.
    pub swing: Option<f64>,
}

/// Swing above which a figure is marked as unsteady.
const UNSTEADY: f64 = 0.1;

impl Figure {
    pub fn heading() -> String {
        format!(
            "{:<12} {:>7} {:>9} {:>12} {:<8} {:>10} {:>6} {:>6}",
            "", "context", "sequences", "value", "", "limit", "share", "swing"
        )
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, context, sequences, value, unit, .. } = self;
        let digits = if *value < 10.0 { 3 } else { 1 };
        write!(f, "{metric:<12} {context:>7} {sequences:>9} {value:>12.digits$} {unit:<8} ")?;
        match (self.limit, self.share) {
            (Some(limit), Some(share)) => write!(f, "{limit:>10.digits$} {:>4.0} %", share * 100.0)?,
            _ => write!(f, "{:>17}", "")?,
        }
        match self.swing {
            Some(swing) if swing > UNSTEADY => write!(f, " {:>4.0} % unsteady", swing * 100.0),
            Some(swing) => write!(f, " {:>4.0} %", swing * 100.0),
            None => write!(f, " {:>6}", "–"),
        }
    }
}

/// Value of a run, and the machine's limit at that time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub value: f64,
    pub limit: Option<f64>,
}

impl Sample {
    pub fn unlimited(value: f64) -> Self {
        Self { value, limit: None }
    }
}

/// Median; of an even number of values the upper middle one. NaN for none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Difference between the largest and the smallest value, relative to the median; `None` for fewer than two.
pub fn swing(samples: &[Sample]) -> Option<f64> {
    let values = || samples.iter().map(|sample| sample.value);
    let (largest, smallest) =
        (values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min));
    (samples.len() > 1).then(|| (largest - smallest) / median(values()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_and_swing_the_full_range() {
        let samples = [3.0, 1.0, 2.0].map(Sample::unlimited);
        assert_eq!((median([3.0, 1.0, 2.0].into_iter()), swing(&samples)), (2.0, Some(1.0)));
        assert_eq!(swing(&samples[..1]), None);
        assert_eq!(median([4.0, 1.0].into_iter()), 4.0);
        assert!(median(std::iter::empty()).is_nan());
    }

    #[test]
    fn small_costs_are_near_their_limit() {
        let sample = |value| Sample { value, limit: Some(100.0) };
        assert_eq!(Metric::Decode.share(&sample(50.0)), Some(0.5));
        assert_eq!(Metric::SecondTurn.share(&sample(200.0)), Some(0.5));
        assert_eq!(Metric::Decode.share(&Sample::unlimited(50.0)), None);
    }
}
