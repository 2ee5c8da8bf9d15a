//! Conformance matrix of tool calls: schemas × dialects × vocabularies × token budgets × tool choices, with
//! random logits.
//!
//! Each cell is one turn of a conversation at temperature 1. Its reply has valid calls only, or the turn is
//! rejected before the first token for a reason that is verified. By default a sample of cells runs over the
//! small vocabulary; `cargo xtask matrix` runs all of them (`LM_MATRIX=all`; `LM_MATRIX=7` runs one in 7) and
//! writes the table of docs/constrained-decoding.md.
//!
//! `LM_FAMILY=name`, `LM_SCHEMA=name`, `LM_VOCABULARY=small|large`, `LM_CHOICE=auto|required` and
//! `LM_BUDGET=300` restrict the cells, `LM_MATRIX_OUT=file` writes each cell as a line of JSON for
//! `testdata/schemas/validate.py`; with `LM_MATRIX_RESUME` cells of that file are not run again, except wrong
//! ones.

mod cell;
mod model;
mod outcome;
mod report;

use std::sync::Mutex;

use lm_conversation::Value;
use lm_processors::Family;

use cell::{Axes, Schema};
use model::Vocabulary;
use report::Report;

/// By default, one cell out of this many runs.
const SAMPLE: usize = 61;
/// Number of families that run in parallel.
const THREADS: usize = 2;

#[test]
fn every_call_is_valid_or_truthfully_refused() {
    let schemas = schemas();
    let vocabularies: Vec<Vocabulary> =
        Vocabulary::all().into_iter().filter(|vocabulary| wanted("LM_VOCABULARY", vocabulary.name)).collect();
    let families = lm_processors::ALL.iter().filter(|family| {
        let dialect = family.processor.dialect();
        dialect.is_some_and(|dialect| !dialect.calls.is_empty())
            && wanted("LM_FAMILY", family.processor.name())
    });
    let waiting = Mutex::new(families.enumerate());
    let report = Mutex::new(Report::from_env());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no thread panics here").next();
                    let Some((number, family)) = next else { break };
                    for vocabulary in &vocabularies {
                        run(number, family, vocabulary, &schemas, &report);
                    }
                }
            });
        }
    });
    report.into_inner().expect("no thread panics with the report").finish();
}

/// Runs the cells of one dialect and vocabulary.
fn run(number: usize, family: &Family, vocabulary: &Vocabulary, schemas: &[Schema], report: &Mutex<Report>) {
    let engine = vocabulary.engine(family);
    for (index, axes) in Axes::all(schemas).enumerate() {
        let done = report.lock().expect("no thread panics with the report").has(family, vocabulary, &axes);
        if sampled(number, index, vocabulary) && axes.wanted() && !done {
            let outcome = cell::run(&engine, family, &axes);
            report.lock().expect("no thread panics with the report").add(family, vocabulary, &axes, outcome);
        }
    }
}

/// Returns true if a cell runs: by default a sample over the small vocabulary that covers every schema and
/// dialect.
fn sampled(family: usize, cell: usize, vocabulary: &Vocabulary) -> bool {
    let one_of = match std::env::var("LM_MATRIX") {
        Err(_) if vocabulary.name != "small" => return false,
        Err(_) => SAMPLE,
        Ok(text) if text == "all" => 1,
        Ok(text) => text.parse().expect("`LM_MATRIX` is `all` or a number of cells"),
    };
    (cell + 7 * family).is_multiple_of(one_of)
}

/// Returns true if the environment variable selects `value`.
fn wanted(variable: &str, value: &str) -> bool {
    std::env::var(variable).map_or(true, |only| only.split(',').any(|only| only == value))
}

fn schemas() -> Vec<Schema> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/schemas/keywords.json");
    let text = std::fs::read_to_string(path).expect("a file of schemas");
    let Ok(Value::Object(schemas)) = serde_json::from_str(&text) else { panic!("an object of schemas") };
    schemas.into_iter().map(|(name, parameters)| Schema { name, parameters }).collect()
}
