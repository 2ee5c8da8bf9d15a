//! Tables of the measurements.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result};

use super::cases::{IRRELEVANCE, Sample, Scores};
use super::{answers, calls, perplexity};

const BEGIN: &str = "<!-- figures: cargo xtask real -->";
const END: &str = "<!-- end of the figures -->";

/// Figures of all models.
#[derive(Default)]
pub struct Report {
    pub calls: Vec<calls::Row>,
    pub answers: Vec<answers::Row>,
    pub perplexity: Vec<perplexity::Row>,
}

impl Report {
    /// The tables, with date and machine.
    pub fn text(&self, sample: Sample) -> Result<String> {
        let mut text = format!("Measured on {} on {}.\n\n", date()?, machine());
        if !self.calls.is_empty() {
            let sample = if sample == Sample::First { "first" } else { "held-out" };
            writeln!(text, "Calls, {sample} cases of each category:\n")?;
            text += "| model | replies | one call | several calls | written by users | all | no call where none fits | \
                     reasoning | repeats | cut | refused | removed |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
            for row in &self.calls {
                writeln!(text, "{}", call_row(row))?;
            }
        }
        if !self.answers.is_empty() {
            text += "\nFormatted answers:\n\n| model | format | replies | right | valid | removed |\n\
                     |---|---|---|---|---|---|\n";
            for answers::Row { model, format, replies, right, valid, all, removed } in &self.answers {
                let removed = mean(removed.map(|removed| (removed, *all)));
                writeln!(
                    text,
                    "| {model} | {format} | {replies} | {right} of {all} | {valid} | {removed} |"
                )?;
            }
        }
        text += "\nPerplexity of `docs/ARCHITECTURE.md`:\n\n| model | perplexity |\n|---|---|\n";
        for perplexity::Row { model, perplexity } in &self.perplexity {
            writeln!(text, "| {model} | {perplexity:.2} |")?;
        }
        Ok(text)
    }
}

fn call_row(row: &calls::Row) -> String {
    let calls::Row { model, mode, scores, reasoned, repeated, cut, refused, removed } = row;
    let removed = mean(Some(*removed).filter(|(_, count)| *count > 0));
    let sum = |names: &[&str]| of(scores, names);
    let one = sum(&["simple_python", "multiple"]);
    let several = sum(&["parallel", "parallel_multiple"]);
    let live = sum(&["live_simple", "live_multiple"]);
    let all =
        sum(&["simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple"]);
    let none = sum(&[IRRELEVANCE]);
    format!(
        "| {model} | {mode} | {one} | {several} | {live} | {all} | {none} | {reasoned} | {repeated} | {cut} | \
         {refused} | {removed} |"
    )
}

/// Mean of a sum over a number of replies, in per cent.
fn mean(sum: Option<(f64, usize)>) -> String {
    sum.map_or_else(|| "–".to_owned(), |(sum, count)| format!("{:.0} %", 100.0 * sum / count as f64))
}

/// Right cases of some categories.
fn of(scores: &Scores, names: &[&str]) -> String {
    let counts = names.iter().filter_map(|name| scores.get(*name));
    let (right, all) = counts.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    if all == 0 { "–".to_owned() } else { format!("{right} of {all}") }
}

/// Returns the page with its figures replaced.
pub fn replaced(page: &str, text: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("the page has no place for figures")?;
    let (_, after) = rest.split_once(END).context("the page has no end of figures")?;
    Ok(format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))
}

fn date() -> Result<String> {
    let output = Command::new("date").arg("+%Y-%m-%d").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split(": ").nth(1)).unwrap_or("this machine");
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    format!("{name}, {count} cores")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_the_former_ones() {
        let page = format!("Text.\n{BEGIN}\nold\n{END}\nMore.\n");
        let new = replaced(&page, "new").expect("a page");
        assert_eq!(new, format!("Text.\n{BEGIN}\n\nnew\n{END}\nMore.\n"));
        assert_eq!(replaced(&new, "new").expect("a page"), new);
        assert!(replaced("none", "new").is_err());
    }
}
