//! Table of images and audio, stage by stage from files to tokens: the largest difference from the
//! references.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::test_programs::{self, INTEGRATION};

/// Integration tests that print stages, by package.
const TESTS: [(&str, &[&str]); 2] =
    [("lm-media", &["golden::", "headers::", "pillow::", "audio::"]), ("lm-model", &["audio::", "vision::"])];

/// Cases of a stage, and their largest difference.
#[derive(Debug, Default, PartialEq)]
struct Stage {
    cases: usize,
    largest: f64,
}

/// Runs the comparisons and prints the table; fails if one of them does.
pub(super) fn check() -> Result<()> {
    let programs = test_programs::build("", &TESTS.map(|(package, _)| (package, INTEGRATION)))?;
    let (mut printed, mut passed) = (String::new(), true);
    for ((_, filters), program) in TESTS.iter().zip(programs) {
        let output = program.command().args(*filters).arg("--nocapture").output()?;
        printed += &String::from_utf8_lossy(&output.stdout);
        passed &= output.status.success();
    }
    print!("{}", table(&printed));
    if !passed {
        bail!("images or audio differ:\n{printed}");
    }
    Ok(())
}

fn table(printed: &str) -> String {
    let rows = stages(printed).into_iter().map(|((subject, stage), Stage { cases, largest })| {
        let largest = if largest == 0.0 { "0".to_owned() } else { format!("{largest:.1e}") };
        format!("| {subject} | {stage} | {cases} | {largest} |\n")
    });
    let heading = "| subject | stage | cases | largest difference |\n|---|---|---|---|\n";
    heading.to_owned() + &rows.collect::<String>()
}

/// Parses the text `stage: SUBJECT | STAGE | CASES | DIFFERENCE` anywhere in a line.
fn stages(printed: &str) -> BTreeMap<(&str, &str), Stage> {
    let mut stages = BTreeMap::<_, Stage>::new();
    for (_, line) in printed.lines().filter_map(|line| line.split_once("stage: ")) {
        if let [subject, stage, cases, difference] = line.split(" | ").collect::<Vec<_>>()[..]
            && let (Ok(cases), Ok(difference)) = (cases.parse::<usize>(), difference.parse::<f64>())
        {
            let found = stages.entry((subject, stage)).or_default();
            found.cases += cases;
            found.largest = found.largest.max(difference);
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_cases_are_counted_with_largest_difference() {
        let printed = "test a ... stage: gemma3-tiny | rows | 1 | 1.5e-7\n\
            stage: gemma3-tiny | ids | 1 | 0\n\
            stage: gemma3-tiny | rows | 2 | 3e-7\n\
            stage: gemma3-tiny | rows | many | 9\nok\n";
        let expected = "| subject | stage | cases | largest difference |\n|---|---|---|---|\n\
            | gemma3-tiny | ids | 1 | 0 |\n\
            | gemma3-tiny | rows | 3 | 3.0e-7 |\n";
        assert_eq!(table(printed), expected);
    }
}
