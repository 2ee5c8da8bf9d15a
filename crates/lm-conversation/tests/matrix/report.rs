//! Table of outcomes by dialect.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};

use lm_processors::Family;
use serde_json::json;

use crate::cell::Axes;
use crate::model::Vocabulary;
use crate::outcome::Outcome;

/// Maximum number of wrong cells printed in full.
const MAX_SHOWN: usize = 40;

/// Outcomes so far.
#[derive(Default)]
pub struct Report {
    dialects: BTreeMap<&'static str, Counts>,
    lines: Option<BufWriter<File>>,
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
    /// Creates a report that writes its cells to the file named by `LM_MATRIX_OUT`.
    pub fn from_env() -> Self {
        let lines = std::env::var_os("LM_MATRIX_OUT");
        let lines = lines.map(|path| BufWriter::new(File::create(path).expect("a file to write to")));
        Self { lines, ..Self::default() }
    }

    pub fn add(&mut self, family: &Family, vocabulary: &Vocabulary, axes: &Axes<'_>, outcome: Outcome) {
        let dialect = family.processor.name();
        self.dialects.entry(dialect).or_default().add(&outcome);
        let (name, message) = (outcome.name(), outcome.message());
        let calls = if let Outcome::Calls(calls) = &outcome { calls.as_slice() } else { &[] };
        let schema = &axes.schema.name;
        if let Some(lines) = &mut self.lines {
            let line = json!({
                "dialect": dialect, "vocabulary": vocabulary.name, "schema": schema, "budget": axes.budget,
                "choice": axes.choice_name(), "outcome": name, "message": message, "calls": calls,
            });
            writeln!(lines, "{line}").expect("a line can be written");
        }
        if matches!(outcome, Outcome::Wrong(_)) && self.shown < MAX_SHOWN {
            self.shown += 1;
            let (budget, choice) = (axes.budget, axes.choice_name());
            let message: String = message.chars().take(300).collect();
            println!("{dialect}, {schema}, {}, {budget:?}, {choice}: {message}", vocabulary.name);
        }
    }

    /// Prints the table; panics if a cell is wrong.
    pub fn finish(mut self) {
        if let Some(lines) = &mut self.lines {
            lines.flush().expect("the file can be written");
        }
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

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        self.cells += 1;
        match outcome {
            Outcome::Calls(calls) => {
                self.replies += 1;
                self.calls += calls.len();
            }
            Outcome::Unfit(_) => self.unfit += 1,
            Outcome::Text => self.text += 1,
            Outcome::RefusedBudget => self.budget += 1,
            Outcome::RefusedSchema(_) => self.schema += 1,
            Outcome::Wrong(_) => self.wrong += 1,
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
