//! Formatted answers beside free ones, and beside those of llama.cpp.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::models::Model;
use super::questions::{self, Format, Group};
use super::service::{Program, Service};

/// Row of the table.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub format: String,
    pub replies: String,
    pub right: usize,
    pub valid: usize,
    pub all: usize,
    /// Sum over the replies of the probability that the mask removed at the first token.
    pub removed: Option<f64>,
}

/// Asks all questions, at most `limit` of a kind, free and in their formats.
pub fn measure(model: &Model, service: &Service, limit: usize) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for group in questions::read()? {
        for formatted in [false, true] {
            let row = row(model, service, &group, formatted, limit)?;
            println!("{}, {}: {} of {}", row.format, row.replies, row.right, row.all);
            let same = |other: &&mut Row| other.format == row.format && other.replies == row.replies;
            match rows.iter_mut().find(same) {
                Some(sum) => sum.add(&row),
                None => rows.push(row),
            }
        }
    }
    Ok(rows)
}

fn row(model: &Model, service: &Service, group: &Group, formatted: bool, limit: usize) -> Result<Row> {
    let mut row = Row {
        model: model.name.to_owned(),
        format: group.format.name().to_owned(),
        replies: name(service.program, formatted).to_owned(),
        right: 0,
        valid: 0,
        all: 0,
        removed: None,
    };
    for (text, right) in group.items.iter().take(limit) {
        let mut request = group.request(text);
        if formatted {
            constrain(service.program, &group.format, &mut request);
        }
        let reply = service.reply(request, false)?;
        row.all += 1;
        row.valid += usize::from(reply.finish == "stop" && group.format.is_valid(&reply.text));
        row.right += usize::from(group.format.is_right(&reply.text, right));
        row.removed = sum(row.removed, reply.removed);
    }
    Ok(row)
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.right += other.right;
        self.valid += other.valid;
        self.all += other.all;
        self.removed = sum(self.removed, other.removed);
    }
}

fn sum(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    left.zip(right).map(|(left, right)| left + right).or(left).or(right)
}

fn name(program: Program, formatted: bool) -> &'static str {
    match (program, formatted) {
        (Program::Lm, false) => "free",
        (Program::Lm, true) => "in the format",
        (Program::LlamaCpp, false) => "llama.cpp, free",
        (Program::LlamaCpp, true) => "llama.cpp, in the format",
    }
}

fn constrain(program: Program, format: &Format, request: &mut Value) {
    match program {
        Program::Lm => format.constrain(request),
        Program::LlamaCpp => format.constrain_llama_cpp(request),
    }
}
