//! `cargo xtask real DIR`: trained models beside reference data: calls of the Berkeley function-calling
//! leaderboard, formatted answers, perplexity. Writes the tables of docs/real-models.md.

mod answers;
mod calls;
mod cases;
mod llama_cpp;
mod models;
mod perplexity;
mod questions;
mod report;
mod service;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::process;
use cases::Case;
use models::Model;
use report::Report;
use service::Service;

const EXAMPLES: &str = "\
DIR has the GGUF files of trained models under their published names; those that are missing are left out. The cases are in \
$LM_SHARED/bfcl (default ../shared/bfcl), and its score.py, for which python3 is needed, says which are right.

Examples:
  cargo xtask real ~/models
  cargo xtask real ~/models --only qwen2.5-coder-0.5b --cases held-out
  cargo xtask real ~/models --llama-server llama.cpp/build/bin/llama-server
  cargo xtask real ~/models --limit 2 --no-report        a quick look";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the models
    folder: PathBuf,
    /// Models to run: a part of the file's name; may be repeated [default: all that are there]
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Cases of each category
    #[arg(long, value_enum, default_value_t = cases::Sample::First)]
    cases: cases::Sample,
    /// Maximum number of cases of each category
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    limit: usize,
    /// Program `llama-server` of llama.cpp: measure its replies to the same requests as well
    #[arg(long, value_name = "PROGRAM")]
    llama_server: Option<PathBuf>,
    /// Print the tables only, with the figures of earlier runs; keep nothing
    #[arg(long)]
    no_report: bool,
}

/// Runs the measurements.
///
/// # Errors
/// When no model is there, or one of the programs fails.
pub fn run(args: &Args) -> Result<()> {
    process::run(&mut process::cargo(&["build", "--release", "--package", "lm-cli"]))?;
    let folder = std::path::absolute(&args.folder)?;
    let wanted =
        |model: &Model| args.only.is_empty() || args.only.iter().any(|name| model.file.contains(name));
    let models: Vec<_> = models::ALL.iter().filter(|model| wanted(model)).collect();
    let there: Vec<_> = models.iter().copied().filter(|model| folder.join(model.file).is_file()).collect();
    for missing in models.iter().filter(|model| !folder.join(model.file).is_file()) {
        println!("skipped: {} is not in {}", missing.file, args.folder.display());
    }
    ensure!(!there.is_empty(), "{} has none of the models", args.folder.display());
    let cases = cases::read(args.cases, args.limit)?;
    let mut report = Report::load(args.cases)?;
    for model in there {
        println!("== {}", model.name);
        let path = folder.join(model.file);
        if model.chats {
            measure(model, &Service::start(&path, &[])?, &cases, args.limit, &mut report)?;
        }
        if model.calls {
            let service = Service::start(&path, &["--tools-note", "dialect"])?;
            report.add_calls(calls::measure_with_note(model, &service, &cases)?);
        }
        if let Some(program) = args.llama_server.as_ref().filter(|_| model.chats) {
            let service = Service::start_llama_cpp(program, &path)?;
            measure(model, &service, &cases, args.limit, &mut report)?;
        }
        report.add_perplexity(perplexity::measure(model, &path)?);
        if !args.no_report {
            report.save(args.cases)?;
        }
    }
    let text = report.text(args.cases)?;
    println!("{text}");
    if !args.no_report {
        let path = process::root().join("docs/real-models.md");
        let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, report::replaced(&page, &text)?)?;
    }
    Ok(())
}

/// Measures the replies of one server.
fn measure(
    model: &Model,
    service: &Service,
    cases: &[Case],
    limit: usize,
    report: &mut Report,
) -> Result<()> {
    if model.calls {
        report.add_calls(calls::measure(model, service, cases)?);
    }
    report.add_answers(answers::measure(model, service, limit)?);
    Ok(())
}
