//! Cases of the function-calling sample, and their scores by its own script.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::process;

/// Categories, with the number of cases of a sample.
const CATEGORIES: [(&str, usize); 7] = [
    ("simple_python", 14),
    ("multiple", 12),
    ("parallel", 8),
    ("parallel_multiple", 6),
    ("live_simple", 6),
    ("live_multiple", 6),
    (IRRELEVANCE, 8),
];
/// Category whose questions no tool fits.
pub const IRRELEVANCE: &str = "irrelevance";

/// Cases of a category that are taken.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sample {
    /// The first ones, by which the code was written
    First,
    /// The last ones, which nobody looked at
    HeldOut,
}

/// A question with tools, and the right calls.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    pub category: &'static str,
    pub value: Value,
}

/// A call of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Value,
}

/// Number of right cases and of all, by category.
pub type Scores = BTreeMap<String, (usize, usize)>;

/// Folder of the sample.
fn folder() -> PathBuf {
    let shared =
        std::env::var_os("LM_SHARED").map_or_else(|| process::root().join("../shared"), PathBuf::from);
    shared.join("bfcl")
}

/// Reads a sample of each category, at most `limit` of each.
pub fn read(sample: Sample, limit: usize) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (category, count) in CATEGORIES {
        let path = folder().join(format!("{category}.jsonl"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let start = if sample == Sample::First { 0 } else { lines.len().saturating_sub(count) };
        for line in lines.iter().skip(start).take(count.min(limit)) {
            let value: Value = serde_json::from_str(line).with_context(|| path.display().to_string())?;
            let id = value["id"].as_str().context("a case without an id")?.to_owned();
            cases.push(Case { id, category, value });
        }
    }
    Ok(cases)
}

/// Scores the calls of each case.
pub fn score(cases: &[Case], calls: &[Vec<Call>]) -> Result<Scores> {
    let folder_of_output = process::root().join("target/real");
    fs::create_dir_all(&folder_of_output)?;
    let (questions, answers) =
        (folder_of_output.join("cases.jsonl"), folder_of_output.join("predictions.jsonl"));
    let lines = |values: Vec<Value>| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    fs::write(&questions, lines(cases.iter().map(|case| case.value.clone()).collect()))?;
    let prediction = |(case, calls): (&Case, &Vec<Call>)| {
        let calls: Vec<Value> =
            calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
        json!({"id": case.id, "calls": calls})
    };
    fs::write(&answers, lines(cases.iter().zip(calls).map(prediction).collect()))?;
    let script = folder().join("score.py");
    let output = Command::new("python3").arg(&script).args([&answers, &questions]).output();
    let output = output.context("cannot run python3")?;
    ensure!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    Ok(scores(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads lines such as `parallel     3/8     37.5 %`.
fn scores(output: &str) -> Scores {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, counts) = (words.next()?, words.next()?);
        let (right, all) = counts.split_once('/')?;
        Some((name.to_owned(), (right.parse().ok()?, all.parse().ok()?)))
    };
    output.lines().filter_map(line).filter(|(name, _)| name != "all").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_from_lines() {
        let text = "parallel                3/8     37.5 %\nall                     3/8     37.5 %\n";
        assert_eq!(scores(text), BTreeMap::from([("parallel".to_owned(), (3, 8))]));
    }
}
