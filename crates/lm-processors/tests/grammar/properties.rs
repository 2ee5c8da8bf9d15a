//! Random tools in every syntax: the parser reads what the grammar accepts back to the same values.

use std::collections::BTreeMap;

use crate::grammar::common::Compiler;
use crate::grammar::random::Random;
use crate::grammar::round_trip::{Case, Outcome};

/// Number of texts of each kind per set of tools.
const TEXTS: u64 = 3;

/// Default number of tool sets per family. `LM_PROPERTY_CASES` overrides it, and `LM_PROPERTY_SEED` the first
/// seed (0).
const CASES: u64 = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn accepted_text_is_read_back() {
    let compiler = Compiler::new();
    let (cases, first) = (number("LM_PROPERTY_CASES", CASES), number("LM_PROPERTY_SEED", 0));
    let family = std::env::var("LM_FAMILY").unwrap_or_default();
    for family in lm_processors::ALL.iter().filter(|all| family.is_empty() || all.processor.name() == family)
    {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for seed in first..first + cases {
            let mut random = Random::seeded(seed);
            let Some(case) = Case::new(&compiler, family.processor, &mut random) else {
                *counts.entry("refused").or_default() += 1;
                continue;
            };
            for _ in 0..TEXTS {
                let written = case.written_calls(&mut random) == Outcome::ReadBack;
                *counts.entry(if written { "written" } else { "unwritable" }).or_default() += 1;
                let outcome = match case.random_text(&mut random) {
                    Outcome::ReadBack => "random",
                    Outcome::Unwritable => "random once",
                    Outcome::Endless => "endless",
                };
                *counts.entry(outcome).or_default() += 1;
            }
        }
        println!("{}: seeds {first} to {}: {counts:?}", family.processor.name(), first + cases);
    }
}
