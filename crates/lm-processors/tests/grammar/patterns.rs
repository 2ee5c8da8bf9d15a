//! Patterns against an engine of ECMA-262: validators find them in the same texts, and grammars accept these
//! texts.

use lm_processors::{Layout, SchemaFault, Value, json_grammar, validator};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};

/// Texts that grammars exclude: they need escapes, or have white space that implementations disagree on.
fn is_left_out(text: &str) -> bool {
    text.contains(|c: char| c < ' ' || "\"\\\u{85}\u{feff}".contains(c))
}

/// Outcomes made with `node testdata/schemas/ecma.js`; `LM_ECMA` names another file of them.
fn outcomes() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/schemas/ecma.json").to_owned();
    let path = std::env::var("LM_ECMA").unwrap_or(path);
    serde_json::from_str(&std::fs::read_to_string(path).expect("the outcomes")).expect("JSON")
}

#[test]
fn patterns_match_as_in_ecma_262() {
    let (file, compiler) = (outcomes(), Compiler::new());
    let texts: Vec<&str> =
        file["texts"].as_array().expect("texts").iter().filter_map(Value::as_str).collect();
    let (mut searched, mut enforced, mut refused, mut unsupported) = (0, 0, 0, 0);
    for outcome in file["patterns"].as_array().expect("patterns") {
        let pattern = outcome["pattern"].as_str().expect("a pattern");
        let schema = json!({"type": "string", "pattern": pattern});
        let (is_error, annex_b) = (outcome["error"] == true, outcome["annex_b"] == true);
        let (validator, grammar) = match (validator(&schema, false), json_grammar(&schema, Layout::Exact)) {
            (Ok(validator), Ok(grammar)) => (validator, grammar),
            (_, Err(error)) => {
                // A search that the engine lacks is refused where the pattern has no grammar.
                unsupported += usize::from(matches!(error.fault, SchemaFault::UnsupportedPattern(_)));
                let refuses =
                    is_error || annex_b || matches!(error.fault, SchemaFault::UnsupportedPattern(_));
                assert!(refuses, "{pattern}: {error}");
                assert_eq!(error.keyword, "pattern");
                refused += 1;
                continue;
            }
            (Err(error), Ok(_)) => panic!("{pattern}: {error}"),
        };
        assert!(!is_error, "{pattern} is not refused");
        let found = outcome["found"].as_str().expect("outcomes").bytes().map(|digit| digit == b'1');
        let matcher = grammar.unenforced.is_empty().then(|| compiler.compile_grammar(&grammar.grammar));
        let matcher = matcher.map(|matcher| matcher.unwrap_or_else(|error| panic!("{pattern}: {error}")));
        for (text, is_found) in texts.iter().zip(found) {
            // Without the flag `u`, a character beyond the basic plane is two; with it, the engine still
            // tries assertions inside it.
            let halves = annex_b || pattern.contains("\\B") || pattern.contains("(?<");
            if halves && text.chars().any(|c| c > '\u{ffff}') {
                continue;
            }
            assert_eq!(validator.is_valid(&json!(text)), is_found, "{pattern} in {text:?}");
            searched += 1;
            if let Some(matcher) = &matcher {
                let taken = verdict(matcher, &json!(text).to_string()) == Verdict::Accepted;
                assert!(
                    if is_left_out(text) { !taken || is_found } else { taken == is_found },
                    "{pattern}: {text:?}"
                );
                enforced += 1;
            }
        }
    }
    println!(
        "{searched} searches, {enforced} by grammars; {refused} patterns refused, {unsupported} of them of ECMA-262"
    );
    assert!(searched > 20_000 && enforced > 5_000 && unsupported * 10 < searched / texts.len());
}
