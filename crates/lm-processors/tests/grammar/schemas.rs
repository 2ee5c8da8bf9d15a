//! Schemas of JSONSchemaBench: number that compile, and the texts their grammars accept and reject.

use std::collections::BTreeMap;
use std::path::Path;

use lm_processors::{Layout, Value, json_grammar, validator};

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::shared;

#[derive(Default)]
struct Counts {
    schemas: usize,
    compiled: usize,
    partial_schemas: usize,
    valid: usize,
    valid_accepted: usize,
    invalid: usize,
    invalid_stopped: usize,
    invalid_stopped_or_refused: usize,
    keywords: BTreeMap<String, usize>,
}

#[test]
fn real_schemas_compile_to_correct_grammars() {
    let Some(folder) = shared::path("jsonschemabench") else { return };
    let compiler = Compiler::new();
    let mut counts = Counts::default();
    for case in cases(&folder) {
        check(&compiler, &case, &mut counts);
    }
    print(&counts);
    assert!(
        counts.compiled * 100 >= counts.schemas * 95,
        "{} of {} compile",
        counts.compiled,
        counts.schemas
    );
    assert_eq!(counts.invalid_stopped_or_refused, counts.invalid);
}

fn cases(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts = files.iter().map(|path| std::fs::read_to_string(path).expect("text"));
    texts
        .flat_map(|text| {
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<_>>()
        })
        .collect()
}

fn check(compiler: &Compiler, case: &Value, counts: &mut Counts) {
    counts.schemas += 1;
    let schema = &case["schema"];
    if let Err(error) = validator(schema, false) {
        panic!("{}: {error}", case["id"]);
    }
    let compiled = json_grammar(schema, Layout::Any).map_err(|error| error.to_string());
    let compiled = compiled.and_then(|json| Ok((compiler.compile_grammar(&json.grammar)?, json.unenforced)));
    let (matcher, unenforced) = match compiled {
        Ok(compiled) => compiled,
        Err(error) => return println!("{}: {error}", case["id"]),
    };
    counts.compiled += 1;
    counts.partial_schemas += usize::from(!unenforced.is_empty());
    unenforced
        .iter()
        .for_each(|unenforced| *counts.keywords.entry(unenforced.keyword.clone()).or_default() += 1);
    let validator = jsonschema::validator_for(schema);
    for test in case["tests"].as_array().into_iter().flatten() {
        let text = test["data"].to_string();
        let verdict = verdict(&matcher, &text);
        let accepted = verdict == Verdict::Accepted;
        if test["valid"] == true {
            counts.valid += 1;
            counts.valid_accepted += usize::from(accepted);
            if !accepted {
                println!("{}: valid, but {verdict:?}: {}", case["id"], around(&text, verdict));
            }
        } else {
            let refused = validator.as_ref().is_ok_and(|validator| !validator.is_valid(&test["data"]));
            counts.invalid += 1;
            counts.invalid_stopped += usize::from(!accepted);
            counts.invalid_stopped_or_refused += usize::from(!accepted || refused);
            if accepted && !refused {
                println!(
                    "{}: invalid, but accepted: {} {}",
                    case["id"],
                    test["note"],
                    around(&text, verdict)
                );
            }
        }
    }
}

fn around(text: &str, verdict: Verdict) -> String {
    let at = if let Verdict::Rejected { at } = verdict { at } else { text.len() };
    String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(60)..(at + 20).min(text.len())]).into_owned()
}

fn print(counts: &Counts) {
    let Counts { schemas, compiled, valid, valid_accepted, invalid, invalid_stopped, .. } = counts;
    println!("compiled {compiled} of {schemas}, {} of them unenforced", counts.partial_schemas);
    println!("valid accepted {valid_accepted} of {valid}");
    println!(
        "invalid stopped {invalid_stopped} of {invalid}, with validation {}",
        counts.invalid_stopped_or_refused
    );
    counts.keywords.iter().for_each(|(keyword, times)| println!("  {keyword}: {times}"));
}
