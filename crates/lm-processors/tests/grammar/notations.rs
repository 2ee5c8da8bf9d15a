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

/// Texts that a grammar accepts, and others.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn check_cases(cases: &[Case], compiled: impl Fn(&str) -> Matcher) {
    for (grammar, accepted, refused) in cases {
        let matcher = compiled(grammar);
        for (text, expected) in
            accepted.iter().map(|text| (text, true)).chain(refused.iter().map(|text| (text, false)))
        {
            let is_accepted = verdict(&matcher, text) == Verdict::Accepted;
            assert_eq!(is_accepted, expected, "{grammar}: {text:?}");
        }
    }
}

#[test]
fn details_of_gbnf_are_those_of_llama_cpp() {
    let cases: [Case; 14] = [
        ("root ::= \"\"", &[""], &["a"]),
        ("root ::= \"a\" (\"\" | \"b\")* \"\"", &["a", "abb"], &["b"]),
        ("root ::= \"\" root2\nroot2 ::= \"<\" (\"\" | root2) \">\"", &["<>", "<<>>"], &["<"]),
        ("root ::= (\n\"a\"\n|\n\"b\"\n) \"c\"", &["ac", "bc"], &["c"]),
        ("root ::= (\n(\"a\" |\n)\n) \"c\"", &["ac", "c"], &["a"]),
        ("# a comment\rroot ::= \"a\"", &["a"], &["b"]),
        (r#"root ::= "\[\]\-\^\/" [\^\/]"#, &["[]-^/^", "[]-^//"], &["[]-^/\\"]),
        ("root ::= (\"a\"\n) \"b\"", &["ab"], &["a"]),
        ("root ::= \"a\"{1, } \"b\"{ 2 }", &["abb", "aaabb"], &["bb", "ab", "abbb"]),
        ("root ::= \"a\" \"d\"{0} \"b\"", &["ab"], &["adb"]),
        ("root ::= [^] \"b\"", &["ab", "\nb"], &["b"]),
        ("root ::= a_b\na_b ::= \"x\"", &["x"], &["y"]),
        ("root ::= \"a\" x\nx ::= \"\"", &["a"], &["", "aa"]),
        ("root ::= \"(\" root \")\" | \"\"", &["", "(())"], &["("]),
    ];
    check_cases(&cases, compiled);
    assert!(gbnf_grammar("root ::= \"a\"{2000}").is_ok());
    for (text, message) in [
        ("root ::= \"a\"\n# two\nx ::= other\ny ::= other", "GBNF, line 3: no rule `other`"),
        ("root ::= !<think>", "GBNF, line 1: elements that name tokens are not supported"),
    ] {
        assert_eq!(gbnf_grammar(text).unwrap_err().to_string(), message);
    }
}

/// Texts that end within a part which could also take what follows it, in rules that are recursive.
#[test]
fn parts_that_share_characters_are_one_terminal() {
    let cases: [Case; 7] = [
        (r#"root ::= "(" root ")" | ("ab" | "a") "bc""#, &["abc", "abbc", "(abc)"], &["ab", "abcc"]),
        (r#"root ::= "(" root ")" | [a-z]+ " "? "x""#, &["abx", "ab x", "(axx)"], &["ab", "x", "ab  x"]),
        (
            "root ::= \"(\" root \")\" | [a-z]+ tail\ntail ::= \" \"? \"x\"",
            &["abx", "a x", "(axx)"],
            &["ab", "x"],
        ),
        (r#"root ::= "(" root ")" | [a-z]+ "1"? "2"? "x""#, &["abx", "a12x", "a2x"], &["ab", "a21x"]),
        (r#"root ::= [a-z]+ "x" root | ".""#, &["abx.", "axbx.", "."], &["ab.", "abx"]),
        (r#"root ::= "(" root ")" | "a"{2,} "ab""#, &["aaab", "aaaab"], &["aab", "aaa"]),
        (r#"root ::= "(" root ")" | "-" "1"? [0-9]+"#, &["-1", "-11", "-2"], &["-", "1"]),
    ];
    check_cases(&cases, compiled);
}

fn compiled_pattern(grammar: &str) -> Matcher {
    let pattern = lark_pattern(grammar).unwrap_or_else(|| panic!("no pattern: {grammar}"));
    let matcher = Compiler::new().compile(TopLevelGrammar::from_regex(&pattern));
    matcher.unwrap_or_else(|error| panic!("{error}\n{pattern}"))
}

#[test]
fn details_of_lark_are_those_of_lark() {
    let cases: [Case; 7] = [
        ("start: (\n\"a\"\n|\n[\"b\"\n]\n) \"c\"", &["ac", "bc", "c"], &["b"]),
        ("start: \"a\"? \"b\"", &["b", "ab"], &["aab", "a"]),
        ("start: \"a\"* \"b\"", &["b", "aab"], &["a"]),
        (r#"start: "\x41\xe4\'""#, &["Aä'"], &["x41"]),
        (r#"start: "a".."a""#, &["a"], &["b"]),
        ("start: \"a\" ~ 2 \"b\" ~ 1..2", &["aab", "aabb"], &["ab", "aa", "aabbb"]),
        ("start: \"a.b\" /c.d/", &["a.bcxd", "a.bc.d"], &["axbcxd"]),
    ];
    check_cases(&cases, compiled_pattern);
    for grammar in [
        "start: \"a\"\nstart: \"b\"",
        "start: \"a\" ~ 3..2",
        "start: \"b\"..\"a\"",
        "start: /a\n/",
        "start: \"a\n\"",
        "start: list{\"a\"}\nlist: \"b\"",
    ] {
        assert_eq!(lark_pattern(grammar), None, "{grammar}");
    }
}

#[test]
fn terminals_of_the_common_module_are_those_of_lark() {
    const FLOATS: &[&str] = &["1.5", "1.", ".5", "1e3", "1.5E-3", ".5e+2"];
    let cases: [Case; 20] = [
        ("CNAME", &["a", "_b1", "A_9"], &["", "1a", "a-b"]),
        ("CR", &["\r"], &["\n", "\r\n"]),
        ("DECIMAL", &["1.", "1.5", ".5"], &["1", ".", "1.5e3"]),
        ("DIGIT", &["0", "9"], &["10", "a"]),
        ("ESCAPED_STRING", &["\"\"", "\"a\\\"b\""], &["\"a", "\"a\nb\"", "\"\\\""]),
        ("FLOAT", FLOATS, &["1", "+1.5", "e3", "."]),
        ("HEXDIGIT", &["0", "a", "F"], &["g", "0a"]),
        ("INT", &["0", "12"], &["", "+1", "1.0"]),
        ("LCASE_LETTER", &["a"], &["A", "ab"]),
        ("LETTER", &["a", "Z"], &["1", "ab"]),
        ("LF", &["\n"], &["\r"]),
        ("NEWLINE", &["\n", "\r\n", "\n\r\n"], &["", "\r", "\n "]),
        ("NUMBER", &["1", "1.5", "1.", ".5", "1e3", "1.5E-3", ".5e+2"], &["", "-1", ".", "e3"]),
        ("SIGNED_FLOAT", &["+1.5", "-1.", ".5", "-1e3"], &["1", "+1", "-", "+-1.5"]),
        ("SIGNED_INT", &["1", "+12", "-3"], &["+", "--1", "1.0"]),
        ("SIGNED_NUMBER", &["1", "-1.5", "+.5e+2", "-1e3"], &["-", "+-1"]),
        ("UCASE_LETTER", &["A"], &["a", "AB"]),
        ("WORD", &["a", "Word", "WORD"], &["", "a1", "a b"]),
        ("WS", &[" ", " \t\n\r\u{c}"], &["", " a"]),
        ("WS_INLINE", &[" ", " \t"], &["", "\n", " \n"]),
    ];
    for (name, accepted, refused) in cases {
        let grammar = |name: &str| compiled_pattern(&format!("start: {name}\n%import common.{name}"));
        check_cases(&[(name, accepted, refused)], grammar);
    }
}
