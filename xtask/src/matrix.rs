//! `cargo xtask matrix`: runs the conformance matrix of tool calls, and updates its table in
//! docs/constrained-decoding.md.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::test_programs::INTEGRATION;
use crate::{document, process};

/// Document with the table, between two marker comments.
const DOCUMENT: &str = "docs/constrained-decoding.md";
const BEGIN: &str = "<!-- matrix: written by `cargo xtask matrix --write` -->";
const END: &str = "<!-- end of matrix -->";

#[derive(clap::Args)]
pub struct Args {
    /// Replace the table in docs/constrained-decoding.md
    #[arg(long)]
    write: bool,
    /// Dialects to run, separated by commas [default: all]
    #[arg(long, conflicts_with = "write")]
    family: Option<String>,
    /// Run one cell out of N
    #[arg(long, value_name = "N", default_value_t = 1)]
    one_in: usize,
    /// Keep the cells of target/matrix.jsonl, except wrong ones, and run the missing ones
    #[arg(long)]
    resume: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let root = process::root();
    let mut command = process::cargo(&["test", "--release", "-p", "lm-conversation", "--test", INTEGRATION]);
    command.args(["--", "--nocapture", "matrix::"]);
    if args.family.is_none() && args.one_in == 1 && !args.resume {
        command.arg("callable::");
    }
    command.env("LM_MATRIX", args.one_in.to_string()).env("LM_MATRIX_OUT", root.join("target/matrix.jsonl"));
    if args.resume {
        command.env("LM_MATRIX_RESUME", "1");
    }
    if let Some(family) = &args.family {
        command.env("LM_FAMILY", family);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    if args.write {
        let path = root.join(DOCUMENT);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
        std::fs::write(&path, document::replaced(&text, BEGIN, END, &table(&printed))?)?;
    }
    if !output.status.success() {
        bail!("a test of the matrix or of calls failed, see above");
    }
    Ok(())
}

/// Extracts the rows of the printed table.
fn table(printed: &str) -> String {
    let rows = printed.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| format!("{row}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_extracted() {
        let printed = "running 1 test\n| a | b |\n|---|---|\n| 1 | 2 |\nok\n";
        assert_eq!(table(printed), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
