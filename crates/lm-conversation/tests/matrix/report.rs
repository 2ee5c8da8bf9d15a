//! Table of outcomes by dialect.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;

use lm_conversation::Value;
use lm_processors::Family;
use serde_json::json;

use crate::matrix::cell::Axes;
use crate::matrix::model::Vocabulary;
use crate::matrix::outcome::Outcome;

/// Maximum number of wrong cells printed in full.
const MAX_SHOWN: usize = 40;

/// Outcomes so far.
#[derive(Default)]
pub struct Report {
    dialects: BTreeMap<String, Counts>,
    lines: Option<File>,
    /// Cells of an earlier run.
    done: HashSet<String>,
    shown: usize,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    cells: usize,
    replies: usize,
    calls: usize,
    unfit: usize,
    text: usize,
    budget: usize,
    schema: usize,
    wrong: usize,
}

impl Report {
    /// Creates a report that writes its cells to the file named by `LM_MATRIX_OUT`, behind those that are
    /// there with `LM_MATRIX_RESUME`.
    pub fn from_env() -> Self {
        let mut report = Self::default();
        let Some(path) = std::env::var_os("LM_MATRIX_OUT") else { return report };
        let resumed = std::env::var_os("LM_MATRIX_RESUME").and_then(|_| std::fs::read_to_string(&path).ok());
        report.lines = Some(File::create(path).expect("a file to write to"));
        for line in resumed.iter().flat_map(|text| text.lines()) {
            report.take_over(line);
        }
        report
    }

    /// Adds a cell of an earlier run. A wrong one or an incomplete line is omitted and runs again.
    fn take_over(&mut self, line: &str) {
        let Some(cell) = serde_json::from_str::<Value>(line).ok().filter(|cell| cell["outcome"] != "wrong")
        else {
            return;
        };
        self.done.insert(key(&cell));
        self.add_line(&cell);
    }

    /// Returns true if an earlier run has the cell.
    pub fn has(&self, family: &Family, vocabulary: &Vocabulary, axes: &Axes<'_>) -> bool {
        self.done.contains(&key(&cell(family, vocabulary, axes)))
    }

    pub fn add(&mut self, family: &Family, vocabulary: &Vocabulary, axes: &Axes<'_>, outcome: Outcome) {
        let mut cell = cell(family, vocabulary, axes);
        cell["outcome"] = outcome.name().into();
        cell["message"] = outcome.message().into();
        cell["calls"] = if let Outcome::Calls(calls) = &outcome { calls.as_slice() } else { &[] }.into();
        self.add_line(&cell);
        if matches!(outcome, Outcome::Wrong(_)) && self.shown < MAX_SHOWN {
            self.shown += 1;
            let message: String = outcome.message().chars().take(300).collect();
            println!("{}: {message}", key(&cell));
        }
    }

    /// Counts a cell and writes its line at once, so that a run that is cut off loses none.
    fn add_line(&mut self, cell: &Value) {
        let dialect = cell["dialect"].as_str().expect("a line of ours");
        self.dialects.entry(dialect.to_owned()).or_default().add(cell);
        if let Some(lines) = &mut self.lines {
            lines.write_all(format!("{cell}\n").as_bytes()).expect("a line can be written");
        }
    }

    /// Prints the table; panics if a cell is wrong.
    pub fn finish(self) {
        println!(
            "| dialect | cells | replies with valid calls | calls | call unfit | text | budget too small | schema refused | wrong |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        let mut all = Counts::default();
        for (dialect, counts) in &self.dialects {
            println!("| `{dialect}` {counts}");
            all.merge(counts);
        }
        println!("| all {all}");
        assert_eq!(all.wrong, 0, "cells are wrong");
        assert!(all.calls > 0, "no cell has a call");
    }
}

/// The coordinates of a cell.
fn cell(family: &Family, vocabulary: &Vocabulary, axes: &Axes<'_>) -> Value {
    json!({
        "dialect": family.processor.name(), "vocabulary": vocabulary.name, "schema": axes.schema.name,
        "budget": axes.budget, "choice": axes.choice_name(),
    })
}

/// The coordinates of a cell as a text.
fn key(cell: &Value) -> String {
    ["dialect", "vocabulary", "schema", "budget", "choice"].map(|axis| cell[axis].to_string()).join(", ")
}

impl Counts {
    fn add(&mut self, cell: &Value) {
        self.cells += 1;
        match cell["outcome"].as_str().expect("a line of ours") {
            "calls" => {
                self.replies += 1;
                self.calls += cell["calls"].as_array().map_or(0, Vec::len);
            }
            "unfit" => self.unfit += 1,
            "text" => self.text += 1,
            "refused: budget" => self.budget += 1,
            "refused: schema" => self.schema += 1,
            _ => self.wrong += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.cells += other.cells;
        self.replies += other.replies;
        self.calls += other.calls;
        self.unfit += other.unfit;
        self.text += other.text;
        self.budget += other.budget;
        self.schema += other.schema;
        self.wrong += other.wrong;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cells, replies, calls, unfit, text, budget, schema, wrong } = self;
        write!(f, "| {cells} | {replies} | {calls} | {unfit} | {text} | {budget} | {schema} | {wrong} |")
    }
}
