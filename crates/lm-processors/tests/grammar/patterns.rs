//! Patterns against an engine of ECMA-262: validators find them in the same texts, and grammars accept these
//! texts.

use lm_processors::{Layout, SchemaFault, Value, json_grammar, validator};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};

/// Texts that grammars exclude: they have white space that implementations disagree on.
fn is_left_out(text: &str) -> bool {
    text.contains(|c: char| matches!(c, '\u{1c}'..='\u{1f}' | '\u{85}' | '\u{feff}'))
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

/// Texts of each pattern with characters that JSON escapes, as the validator finds the pattern in them.
#[test]
fn escaped_texts_match_their_patterns() {
    let compiler = Compiler::new();
    let texts = [
        "",
        "a",
        "\"",
        "\\",
        "\n",
        "/",
        "\u{e9}",
        "\t",
        "\u{1}",
        "a\"b",
        "a\\b",
        "C:\\dir\\f.txt",
        "two\nlines",
        "x/y",
        "caf\u{e9}",
        "\"\"",
        "\u{1f600}",
        "say \"no\"",
        "a-b",
        "7",
        "\u{7f}",
        "ab\u{c}",
        "\\\"",
    ];
    let patterns = [
        r"\S",
        r"\s",
        r"^\S+$",
        r"^[^a]*$",
        r"^.*$",
        r"\\",
        "\"",
        "^[^\"]+$",
        r"^[A-Z]:(\\\w+)+\.txt$",
        r"\n",
        r"^\w+\n\w+$",
        r"\/",
        r"^[\x00-\x1f]$",
        r"[\t\f\v]",
        r"\cA",
        r"\u00e9$",
        r"\u{e9}",
        r"^[^]$",
        r"^(?!.*\\).+$",
        r#"^(?=.*")[^a]+$"#,
        r#"^(?<q>")+?$"#,
        r"\W",
        r"\D$",
        r"\p{L}",
        r"^[\-\/\\]+$",
        r#"^a|"$"#,
        r"\0|\x7f",
        r"^[^\n]{2,4}$",
        r"[\b\\]",
    ];
    for pattern in patterns {
        let schema = json!({"type": "string", "pattern": pattern});
        let validator = validator(&schema, false).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for layout in [Layout::Exact, Layout::Any] {
            let grammar = json_grammar(&schema, layout).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(grammar.unenforced, [], "{pattern}");
            let matcher = compiler.compile_grammar(&grammar.grammar);
            let matcher = matcher.unwrap_or_else(|error| panic!("{pattern}: {error}"));
            for text in texts {
                let taken = verdict(&matcher, &json!(text).to_string()) == Verdict::Accepted;
                assert_eq!(taken, validator.is_valid(&json!(text)), "{pattern}: {text:?}");
            }
        }
    }
}

#[test]
fn patterns_take_every_spelling_of_a_character() {
    let compiler = Compiler::new();
    for (pattern, taken, stopped) in [
        (
            "^[a-z]/[a-z]$",
            vec![r#""a/b""#, r#""a\/b""#, r#""\u0061\u002f\u007A""#],
            vec![r#""a\u002e""#, r#""a\\/b""#],
        ),
        (
            "^caf\u{e9}$",
            vec!["\"caf\u{e9}\"", r#""caf\u00e9""#, r#""caf\u00E9""#],
            vec![r#""caf\u00e8""#, r#""cafe""#],
        ),
        (r"^\S+$", vec![r#""\u0041\"""#, r#""\\""#], vec![r#""\n""#, r#""\"#, r#""""#]),
        (r"^.{2}$", vec![r#""\"\\""#, r#""\u00e9x""#, r#""\t\t""#], vec![r#""\"""#, r#""\n\n""#]),
    ] {
        let schema = json!({"type": "string", "pattern": pattern});
        let grammar = json_grammar(&schema, Layout::Any).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let matcher = compiler.compile_grammar(&grammar.grammar).expect("a grammar");
        for text in taken {
            assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{pattern}: {text}");
        }
        for text in stopped {
            assert_ne!(verdict(&matcher, text), Verdict::Accepted, "{pattern}: {text}");
        }
    }
}
