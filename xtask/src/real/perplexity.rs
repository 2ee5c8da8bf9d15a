//! Perplexity of a text of the repository, by `lm eval`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::models::Model;
use crate::load::Lm;
use crate::process;

/// The text: English prose, the same for all models.
const TEXT: &str = "docs/ARCHITECTURE.md";

/// Row of the table.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub perplexity: f64,
}

/// Runs `lm eval`.
pub fn measure(model: &Model, path: &Path) -> Result<Row> {
    let lm = Lm { model: Some(path.to_owned()), ..Lm::default() };
    let output = lm.command("eval").arg(process::root().join(TEXT)).arg("--json").output()?;
    ensure!(output.status.success(), "lm eval: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let perplexity = report["perplexity"].as_f64().context("lm eval printed no perplexity")?;
    println!("perplexity {perplexity:.2}");
    Ok(Row { model: model.name.to_owned(), perplexity })
}
