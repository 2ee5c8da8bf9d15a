//! Grammars in GBNF accept what llama.cpp accepts, patterns of Lark grammars what Lark accepts.

use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;
use lm_processors::{gbnf_grammar, is_gbnf, lark_pattern, schema_pattern};
use serde_json::Value;

use super::common::{Compiler, Verdict, verdict};

/// Verdicts of llama.cpp, by `testdata/grammars/generate.py`.
fn golden(key: &str) -> Vec<Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/grammars/golden.json");
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let golden: Value = serde_json::from_str(&text).expect("it is JSON");
    golden[key].as_array().expect("a list").clone()
}

fn compiled(grammar: &str) -> Matcher {
    let grammar = gbnf_grammar(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
    let matcher = Compiler::new().compile_grammar(&grammar);
    matcher.unwrap_or_else(|error| panic!("{error}\n{}", grammar.lark))
}

#[test]
fn verdicts_equal_llama_cpp() {
    let grammars = golden("grammars");
    assert!(grammars.len() > 20);
    let mut wrong = Vec::new();
    for case in &grammars {
        let text = case["grammar"].as_str().unwrap();
        assert!(is_gbnf(text), "{text}");
        let grammar = compiled(text);
        for (text, accepted) in case["texts"].as_object().unwrap() {
            let verdict = verdict(&grammar, text);
            if (verdict == Verdict::Accepted) != *accepted {
                wrong.push(format!("{}: {text:?} is {verdict:?}, llama.cpp: {accepted}", case["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faulty_grammars_are_refused_with_their_line() {
    let faults = golden("faults");
    assert!(faults.len() > 10);
    for case in faults {
        let text = format!("# {}\n{}", case["name"], case["grammar"].as_str().unwrap());
        let error = gbnf_grammar(&text).expect_err(&text);
        assert!(matches!(error.line, 1 | 2) && !error.message.is_empty(), "{text}: {error}");
    }
    let error = gbnf_grammar("root ::= item\nitem ::= \"a\" |\n  [b-a]\n").unwrap_err();
    assert_eq!(error.to_string(), "GBNF, line 3: the range from 'b' to 'a' is empty");
    let error = gbnf_grammar("root ::= \"a\"{3000}").unwrap_err();
    assert_eq!(error.to_string(), "GBNF, line 1: expected a number up to 2000, found `3000}`");
    let error = gbnf_grammar("root ::= \"a\"\nroot ::= \"b\"").unwrap_err();
    assert_eq!(error.to_string(), "GBNF, line 2: the rule `root` is defined twice");
    let error = gbnf_grammar("root ::= <think> \"a\"").unwrap_err();
    assert_eq!(error.to_string(), "GBNF, line 1: elements that name tokens are not supported");
    let error = gbnf_grammar(&format!("root ::= {}", "(".repeat(100_000))).unwrap_err();
    assert_eq!(error.to_string(), "GBNF, line 1: groups are nested deeper than 64");
}

#[test]
fn hostile_grammars_end_soon() {
    for (grammar, message) in [
        (
            format!("root ::= \"a\"{}", "?".repeat(100_000)),
            "GBNF, line 1: more than 64 operators after an element",
        ),
        (
            (0..3_000).map(|rule| format!("r{rule} ::= r{}\n", rule + 1)).collect(),
            "GBNF, line 2000: more than 2000 rules",
        ),
        (format!("root ::= {}", "x ".repeat(200_000)), "GBNF, line 1: 400009 bytes, at most 262144 are read"),
    ] {
        assert_eq!(gbnf_grammar(&grammar).unwrap_err().to_string(), message);
    }
    let mentions = format!("root ::= {}\nx ::= \"a\"", "x ".repeat(100_000));
    assert!(gbnf_grammar(&mentions).is_ok());
    let optional = format!("root ::= \"(\" root \")\" | {}", "x ".repeat(50_000) + "\nx ::= \"a\"?");
    assert!(gbnf_grammar(&optional).is_ok());
}

#[test]
fn chain_of_rules_is_as_deep_as_it_is_long() {
    // The compiler recurses; an engine's has such a stack, too.
    let check = std::thread::Builder::new().stack_size(256 << 20).spawn(check_chain).unwrap();
    check.join().unwrap();
}

fn check_chain() {
    let chain: String = (0..1_990).map(|rule| format!("r{rule} ::= r{}\n", rule + 1)).collect();
    let grammar = compiled(&format!("\u{feff}root ::= r0\n{chain}r1990 ::= \"b\""));
    assert_eq!(verdict(&grammar, "b"), Verdict::Accepted);
}

#[test]
fn lark_is_not_taken_for_gbnf() {
    for lark in ["start: \"::=\"", "// root ::= x\nstart: /a/", "start: x # ::=\nx: \"a\"", ""] {
        assert!(!is_gbnf(lark), "{lark}");
    }
    for gbnf in ["root ::= \"a\"", "# a comment\n\nroot  ::= [a]", "root\n::= x"] {
        assert!(is_gbnf(gbnf), "{gbnf}");
    }
}

#[test]
fn errors_of_mistyped_rules_are_about_gbnf() {
    for (text, message) in [
        ("root := \"a\"", "line 1: expected `::=` after `root`, found `:= \"a\"`"),
        ("root = \"a\"", "line 1: expected `::=` after `root`, found `= \"a\"`"),
        ("root :: = \"a\"", "line 1: expected `::=` after `root`, found `:: = \"a\"`"),
        ("root -> \"a\"", "line 1: expected `::=` after `root`, found `-> \"a\"`"),
        ("root: \"a\"", "line 1: expected `::=` after `root`, found `: \"a\"`"),
        ("# a list\n  item = [a-z]\nroot:: item", "line 2: expected `::=` after `item`, found `= [a-z]`"),
        ("root ::= item\nitem := [a-z]", "line 2: expected `::=` after `item`, found `:= [a-z]`"),
    ] {
        assert!(is_gbnf(text), "{text}");
        assert_eq!(gbnf_grammar(text).unwrap_err().to_string(), format!("GBNF, {message}"));
    }
    // What a Lark grammar may have, which has the rule `start`.
    for lark in [
        "start: root\nroot: \"a\"",
        "root: \"a\"\nstart: root",
        "start[\n  stop=\"x\"]: /a/",
        "start.1: a\na: \"::\"",
        "%llguidance {}\nstart: x",
        "rooted: \"a\"",
    ] {
        assert!(!is_gbnf(lark), "{lark}");
    }
}

#[test]
fn classes_end_on_their_line_in_errors() {
    for (text, message) in [
        ("root ::= [a-\nx ::= \"b\"", "line 1: expected a character after `-`, found the end of the line"),
        ("root ::= [a-", "line 1: expected a character after `-`, found the end"),
        ("root ::= [a-]", ""),
    ] {
        let error = gbnf_grammar(text).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.strip_prefix("GBNF, ").unwrap_or_default(), message, "{text}");
    }
}

#[test]
fn patterns_accept_what_lark_accepts() {
    let compiler = Compiler::new();
    let mut wrong = Vec::new();
    for case in golden("lark") {
        let grammar = case["grammar"].as_str().unwrap();
        let pattern = lark_pattern(grammar).unwrap_or_else(|| panic!("no pattern: {grammar}"));
        let compiled = compiler.compile(TopLevelGrammar::from_regex(&pattern)).unwrap();
        assert!(schema_pattern(&pattern).is_some(), "{pattern}");
        for (text, accepted) in case["texts"].as_object().unwrap() {
            let verdict = verdict(&compiled, text);
            if (verdict == Verdict::Accepted) != *accepted {
                wrong.push(format!("{}: {text:?} is {verdict:?}, Lark: {accepted}\n{pattern}", case["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for case in golden("no_pattern") {
        assert_eq!(lark_pattern(case["grammar"].as_str().unwrap()), None, "{}", case["name"]);
    }
}

#[test]
fn patterns_are_bounded() {
    let doubling: String = (0..40).map(|rule| format!("r{rule}: r{} r{}\n", rule + 1, rule + 1)).collect();
    assert_eq!(lark_pattern(&format!("start: r0\n{doubling}r40: \"a\"")), None);
    assert_eq!(lark_pattern(&format!("start: {}", "(".repeat(100_000))), None);
    assert_eq!(lark_pattern("start: \"a\" ~ 3000"), None);
}
