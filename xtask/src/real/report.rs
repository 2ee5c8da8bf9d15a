//! Tables of the measurements.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::cases::{IRRELEVANCE, Sample, Scores};
use super::{answers, calls, perplexity};
use crate::{document, process};

const BEGIN: &str = "<!-- figures: cargo xtask real -->";
const END: &str = "<!-- end of the figures -->";

/// Figures of all models, which are kept in `target/real` from run to run.
#[derive(Default, Serialize, Deserialize)]
pub struct Report {
    pub calls: Vec<calls::Row>,
    pub answers: Vec<answers::Row>,
    pub perplexity: Vec<perplexity::Row>,
}

impl Report {
    /// Reads the figures of earlier runs.
    pub fn load(sample: Sample) -> Result<Self> {
        match fs::read_to_string(file(sample)) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Writes the figures for later runs.
    pub fn save(&self, sample: Sample) -> Result<()> {
        let file = file(sample);
        fs::create_dir_all(file.with_file_name(""))?;
        Ok(fs::write(file, serde_json::to_string(self)?)?)
    }

    /// Adds rows about calls in place of earlier ones of the same model and mode.
    pub fn add_calls(&mut self, rows: Vec<calls::Row>) {
        let key = |row: &calls::Row| (row.model.clone(), row.mode.clone());
        replace(&mut self.calls, rows, key);
    }

    /// Adds rows about answers in place of earlier ones of the same model and kind.
    pub fn add_answers(&mut self, rows: Vec<answers::Row>) {
        let key = |row: &answers::Row| (row.model.clone(), row.format.clone(), row.replies.clone());
        replace(&mut self.answers, rows, key);
    }

    /// Adds the perplexity of a model.
    pub fn add_perplexity(&mut self, row: perplexity::Row) {
        replace(&mut self.perplexity, vec![row], |row| row.model.clone());
    }

    /// The tables, with date and machine.
    pub fn text(&self, sample: Sample) -> Result<String> {
        let mut text = format!("Measured on {} on {}.\n\n", process::date()?, machine());
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

/// Replaces the rows of the same keys in their places, and appends the others.
fn replace<R, K: PartialEq>(rows: &mut Vec<R>, new: Vec<R>, key: impl Fn(&R) -> K) {
    for row in new {
        match rows.iter_mut().find(|old| key(old) == key(&row)) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
}

fn file(sample: Sample) -> PathBuf {
    let name = if sample == Sample::First { "figures.json" } else { "figures-held-out.json" };
    process::root().join("target/real").join(name)
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
    document::replaced(page, BEGIN, END, text)
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
    fn rows_replace_those_of_the_same_key() {
        let mut rows = vec![("a", 1), ("b", 2)];
        replace(&mut rows, vec![("b", 3), ("c", 4)], |row| row.0);
        assert_eq!(rows, [("a", 1), ("b", 3), ("c", 4)]);
    }
}
