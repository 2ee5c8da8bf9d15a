//! Formats the JSON lines of `lm bench` as a table.

use anyhow::{Context, Result};
use serde_json::Value;

/// A measurement.
pub struct Figure {
    /// The line as printed.
    pub line: String,
    fields: Value,
}

/// Fields that identify a measurement.
const KEY: [&str; 6] = ["metric", "weights", "cpu", "context", "sequences", "kv"];

/// Parses measurements, one JSON object per line.
pub fn read(text: &str) -> Result<Vec<Figure>> {
    text.lines()
        .map(|line| {
            let fields = serde_json::from_str(line).with_context(|| format!("not a figure: {line}"))?;
            Ok(Figure { line: line.to_owned(), fields })
        })
        .collect()
}

pub fn heading(compared: bool) -> String {
    let before = if compared { " | against before" } else { "" };
    format!(
        "{:<12} | {:>7} | {:>9} | {:>19} | {:>9} | {:>6} | {:>7}{before}",
        "metric", "context", "sequences", "value", "limit", "of it", "swing"
    )
}

impl Figure {
    pub fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or("?")
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.fields[field].as_f64()
    }

    /// A row of the table, with the ratio to the same measurement of an earlier run.
    pub fn row(&self, before: &[Figure]) -> String {
        let value = self.number("value").unwrap_or(f64::NAN);
        let digits = if value < 10.0 { 2 } else { 1 };
        let limit = self.number("limit").map(|limit| format!("{limit:.digits$}")).unwrap_or_default();
        let share = self.number("share").map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default();
        let mark = |swing: f64| if swing > 0.1 { "!" } else { " " };
        let swing = self
            .number("swing")
            .map(|swing| format!("{:.0} %{}", swing * 100.0, mark(swing)))
            .unwrap_or_default();
        let same = |other: &&Figure| KEY.iter().all(|&key| other.fields[key] == self.fields[key]);
        let ratio = before.iter().find(same).and_then(|before| Some(value / before.number("value")?));
        format!(
            "{:<12} | {:>7} | {:>9} | {value:>10.digits$} {:<8} | {limit:>9} | {share:>6} | {swing:>7}{}",
            self.text("metric"),
            self.number("context").unwrap_or(0.0),
            self.number("sequences").unwrap_or(0.0),
            self.text("unit"),
            ratio.map(|ratio| format!(" | {ratio:.2} x")).unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"metric":"decode","weights":"q4","cpu":"avx2","context":0,"sequences":1,"kv":"f16","value":50.0,"unit":"tokens/s","limit":100.0,"share":0.5,"swing":0.2}"#;

    #[test]
    fn figure_is_shown_with_limit_and_comparison() {
        let figures = read(LINE).expect("a figure");
        let before = read(&LINE.replace("50.0", "40.0")).expect("a figure");
        let other = read(&LINE.replace("avx2", "avx512")).expect("a figure");
        assert!(figures[0].row(&before).ends_with("50 % |   20 %! | 1.25 x"), "{}", figures[0].row(&before));
        assert!(!figures[0].row(&other).contains('x'));
        assert!(read("tokens").is_err());
    }
}
