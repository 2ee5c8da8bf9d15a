//! Hostile schemas and templates: time, memory and threads of each, measured in a child process.
//!
//! `cargo test --release -p lm-conversation --test integration hostile -- --nocapture` prints the table of
//! docs/constrained-decoding.md.
#![cfg(target_os = "linux")]

mod process;
mod schemas;
mod templates;

use crate::shared;
use std::time::Duration;

use process::{Usage, measure};

/// Maximum CPU time of one input. Debug builds are slow.
const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 20 });
/// Maximum memory of compiling one schema, beyond that of an idle process.
const MAX_SCHEMA_MIB: u64 = 256;
/// Maximum memory of rendering one template, beyond that of an idle process: the counted memory, and the
/// spare capacity of growing texts and lists.
const MAX_TEMPLATE_MIB: u64 = 512;

/// Environment variable with the input of a child process.
const INPUT: &str = "LM_HOSTILE_INPUT";

#[test]
fn schemas_stay_within_time_memory_and_threads() {
    let names: Vec<_> = schemas::all().into_iter().map(|(name, _)| format!("schema {name}")).collect();
    assert!(names.len() >= 20);
    within(&names, MAX_SCHEMA_MIB);
}

#[test]
fn templates_stay_within_time_memory_and_threads() {
    let names: Vec<_> = templates::all().into_iter().map(|(name, _)| format!("template {name}")).collect();
    assert!(names.len() >= 20);
    within(&names, MAX_TEMPLATE_MIB);
}

/// The bounds for hostile schemas do not reject real ones.
#[test]
fn schemas_of_the_benchmark_compile() {
    let Some(folder) = shared::path("jsonschemabench") else { return };
    let files = std::fs::read_dir(folder).expect("a folder");
    let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
    let texts: Vec<String> = texts.collect();
    let cases = texts.iter().flat_map(|text| text.lines()).filter_map(|line| serde_json::from_str(line).ok());
    let refused: Vec<String> = cases.filter_map(|case: lm_template::Value| schemas::refused(&case)).collect();
    assert!(refused.len() <= 1, "{refused:#?}");
}

/// Processes one input, in a child process.
#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn child() {
    let Ok(input) = std::env::var(INPUT) else { return };
    let before = process::threads();
    let outcome = match input.split_once(' ') {
        Some(("schema", name)) => schemas::compile(name),
        Some(("template", name)) => templates::render(name),
        _ => "idle".to_owned(),
    };
    println!("\n{}", process::report(&outcome, before));
}

fn within(names: &[String], max_mib: u64) {
    let idle = measure("idle", MAX_TIME).peak_mib;
    let only = std::env::var("LM_HOSTILE_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    println!("| input | outcome | seconds | peak MiB | threads left |\n|---|---|---|---|---|");
    for name in names.iter().filter(|name| name.contains(&only)) {
        let Usage { outcome, seconds, peak_mib, threads_left, ended } = measure(name, MAX_TIME);
        let peak = peak_mib.saturating_sub(idle);
        println!("| {name} | {outcome} | {seconds:.2} | {peak} | {threads_left} |");
        if !ended || peak > max_mib || threads_left > 0 {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "over {max_mib} MiB, {MAX_TIME:?} or with threads left: {failed:?}");
}
