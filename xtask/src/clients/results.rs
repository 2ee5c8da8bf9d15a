//! Results of flows, and their table in the documentation.

use std::fmt;

use anyhow::Result;
use serde::Deserialize;

use super::table::{CLIENTS, Client};
use crate::{document, process};

const BEGIN: &str = "<!-- clients: cargo xtask clients -->";
const END: &str = "<!-- end of the clients -->";
const HEADING: &str = "| client | version | run on | flows | result |\n|---|---|---|---|---|\n";

/// Result of a flow: `passed`, `failed`, or a limit such as `too small`.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct Outcome {
    flow: String,
    pub result: String,
    reason: String,
}

impl Outcome {
    pub fn failed(flow: &str, error: &anyhow::Error) -> Self {
        Self { flow: flow.to_owned(), result: "failed".to_owned(), reason: format!("{error:#}") }
    }

    /// Name of the flow without that of the variant before it, such as an API.
    fn name(&self) -> &str {
        self.flow.split_once(": ").map_or(&self.flow, |(_, name)| name)
    }

    fn cell(&self) -> String {
        let reason = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        format!("{}{reason}", self.result).replace('|', "\\|").replace('\n', " ")
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}: {}", self.flow, self.cell())
    }
}

/// Reads the output of a script, a line of JSON for each flow among those that the client prints.
pub fn read(output: &str) -> Vec<Outcome> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the document with the rows of a client replaced.
pub fn replaced(text: &str, client: &Client, outcomes: &[Outcome]) -> Result<String> {
    let [_, table, _] = document::parts(text, BEGIN, END)?;
    let new = rows(client, outcomes, &process::date()?);
    let rows: String = CLIENTS
        .iter()
        .map(|other| {
            let old = || table.lines().filter(|line| line.starts_with(&format!("| {} |", other.name)));
            if other.name == client.name {
                new.clone()
            } else {
                old().map(|line| format!("{line}\n")).collect()
            }
        })
        .collect();
    document::replaced(text, BEGIN, END, &format!("{HEADING}{rows}"))
}

/// Rows of a client: the flows that passed in one, each other result in one of its own.
fn rows(client: &Client, outcomes: &[Outcome], date: &str) -> String {
    let mut cells: Vec<String> = Vec::new();
    for outcome in outcomes {
        if !cells.contains(&outcome.cell()) {
            cells.push(outcome.cell());
        }
    }
    cells.sort_by_key(|cell| cell != "passed");
    let row = |cell: &String| {
        let flows = names(outcomes.iter().filter(|outcome| outcome.cell() == *cell));
        format!("| {} | {} | {date} | {flows} | {cell} |\n", client.name, client.version())
    };
    cells.iter().map(row).collect()
}

/// Names of flows, with the number of variants of each.
fn names<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for outcome in outcomes {
        match counts.iter_mut().find(|(name, _)| *name == outcome.name()) {
            Some((_, count)) => *count += 1,
            None => counts.push((outcome.name(), 1)),
        }
    }
    let name = |(name, count): &(&str, usize)| {
        if *count == 1 { (*name).to_owned() } else { format!("{name} ({count})") }
    };
    counts.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"{"flow": "openai: chat", "result": "passed", "reason": ""}
a warning
{"flow": "anthropic: chat", "result": "passed", "reason": ""}
{"flow": "agent", "result": "too small", "reason": "it a|b"}
"#;

    #[test]
    fn rows_of_a_client_are_replaced() {
        let outcomes = read(OUTPUT);
        assert_eq!(outcomes.len(), 3);
        let [first, second, ..] = CLIENTS else { panic!("two clients") };
        let document =
            format!("text\n{BEGIN}\n| {} | old |\n| {} | kept |\n{END}\nmore\n", first.name, second.name);
        let new = replaced(&document, first, &outcomes).expect("both lines are there");
        assert!(new.contains("| chat (2) | passed |\n"), "{new}");
        assert!(new.contains("| agent | too small: it a\\|b |\n"), "{new}");
        assert!(new.contains(&format!("| {} | kept |\n", second.name)) && !new.contains("| old |"), "{new}");
        assert!(new.starts_with("text\n") && new.ends_with(&format!("{END}\nmore\n")), "{new}");
        assert!(replaced("text", first, &outcomes).is_err());
    }
}
