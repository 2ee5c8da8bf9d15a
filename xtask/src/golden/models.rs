//! Table of the tiny checkpoints of every architecture: the error of our logits against the reference, on
//! each device; and of the GGUF files made from them: the error against the checkpoint's logits, or against
//! the reference if the file has other values.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Stdio;

use anyhow::{Result, bail};

use crate::process;
use crate::test_programs::INTEGRATION;

/// A device: its name in the tests' output, its backend's name, and its cargo feature.
struct Column {
    device: &'static str,
    backend: &'static str,
    feature: Option<&'static str>,
}

const COLUMNS: [Column; 3] = [
    Column { device: "cpu", backend: "Flex", feature: None },
    Column { device: "ndarray", backend: "NdArray", feature: Some("ndarray") },
    Column { device: "gpu", backend: "wgpu", feature: Some("wgpu") },
];

/// Parsed test output, by architecture and checkpoint, then by device and measure.
type Cells<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<(&'a str, &'a str), &'a str>>;

/// Runs the comparisons with these features of lm-model and prints the table; fails if one of them does.
pub(super) fn check(features: &str) -> Result<()> {
    let arguments = [
        "test",
        "-p",
        "lm-model",
        "--test",
        INTEGRATION,
        "--features",
        features,
        "--",
        "--nocapture",
        "goldens::tiny::",
        "goldens::gguf::",
    ];
    let output = process::cargo(&arguments).stderr(Stdio::inherit()).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{}", table(&printed, features));
    if !output.status.success() {
        bail!("the goldens do not match:\n{printed}");
    }
    Ok(())
}

/// Formats the table, with a row for each architecture and checkpoint.
fn table(printed: &str, features: &str) -> String {
    let mut table = String::from("| architecture | checkpoint |");
    COLUMNS.iter().for_each(|column| table += &format!(" {} |", column.backend));
    table += " greedy |\n";
    table += &format!("|{}\n", "---|".repeat(COLUMNS.len() + 3));
    for ((architecture, checkpoint), found) in cells(printed) {
        let logits = COLUMNS.map(|column| *found.get(&(column.device, "logits")).unwrap_or(&"not run"));
        let greedy: Vec<_> =
            COLUMNS.iter().filter_map(|column| found.get(&(column.device, "greedy"))).collect();
        let same = greedy.iter().all(|count| count.split_once('/').is_some_and(|(same, all)| same == all));
        let greedy = match same {
            _ if greedy.is_empty() => "not run",
            true => "same",
            false => "not the same",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {architecture} | {checkpoint} | {} | {greedy} |", logits.join(" | "));
    }
    for column in &COLUMNS {
        if let Some(reason) = column.skip_reason(printed, features) {
            table += &format!("\n{}: not run, {reason}\n", column.backend);
        }
    }
    table
}

/// Parses the text `golden: ARCHITECTURE CHECKPOINT on DEVICE: MEASURE VALUE` anywhere in a line.
fn cells(printed: &str) -> Cells<'_> {
    let mut cells = Cells::new();
    for line in printed.lines().filter_map(|line| line.split_once("golden: ")) {
        if let [architecture, checkpoint, "on", device, measure, value] =
            line.1.split_whitespace().collect::<Vec<_>>()[..]
        {
            let found = cells.entry((architecture, checkpoint)).or_default();
            found.insert((device.trim_end_matches(':'), measure), value);
        }
    }
    cells
}

impl Column {
    /// Reason why the device did not run.
    fn skip_reason(&self, printed: &str, features: &str) -> Option<String> {
        let feature = self.feature?;
        if !features.split(',').any(|named| named == feature) {
            return Some(format!("`{feature}` is not among --features"));
        }
        let mark = format!("skipped: {}: ", self.device);
        printed.lines().find_map(|line| line.split_once(&mark)).map(|(_, reason)| reason.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "test tiny::a ... golden: llama llama-tiny on cpu: logits 8.2e-6\n\
        golden: llama llama-tiny on cpu: greedy 4/4\n\
        skipped: gpu: no adapter\n\
        golden: llama llama-tiny on ndarray: logits 7.0e-6\n\
        golden: llama llama-tiny on ndarray: greedy 3/4\nok\n";

    #[test]
    fn row_has_a_cell_for_each_device() {
        let table = table(PRINTED, "ndarray,wgpu");
        let row = "| llama | llama-tiny | 8.2e-6 | 7.0e-6 | not run | not the same |\n";
        assert!(table.contains(row), "{table}");
        assert!(table.ends_with("\nwgpu: not run, no adapter\n"), "{table}");
    }

    #[test]
    fn missing_greedy_tokens_are_reported() {
        let table = table("golden: a a.gguf on cpu: logits 0e0\n", "");
        assert!(table.contains("| a | a.gguf | 0e0 | not run | not run | not run |"), "{table}");
    }

    #[test]
    fn uncompiled_device_is_reported() {
        let table = table("golden: a b on cpu: greedy 1/1\n", "");
        assert!(table.contains("| a | b | not run | not run | not run | same |"), "{table}");
        assert!(table.contains("NdArray: not run, `ndarray` is not among --features"), "{table}");
    }
}
