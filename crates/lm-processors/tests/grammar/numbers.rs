//! Bounds of numbers: grammars accept what the bounds allow.

use lm_processors::{GrammarRequest, ResponseFormat, SchemaFault, Value};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, grammar_of, verdict};

fn takes(compiler: &Compiler, schema: &Value, texts: &[&str]) -> Vec<bool> {
    let format = Some(ResponseFormat::JsonSchema(schema.clone()));
    let request = GrammarRequest { response_format: format, ..GrammarRequest::default() };
    let grammar = grammar_of("hermes", &request).expect("a grammar");
    assert_eq!(grammar.unenforced, [], "{schema}");
    let matcher = compiler.compile_grammar(&grammar.grammar);
    let matcher = matcher.unwrap_or_else(|error| panic!("{error}\n{}", grammar.grammar.lark));
    texts.iter().map(|text| verdict(&matcher, text) == Verdict::Accepted).collect()
}

/// Compares every pair of small bounds with plain comparison.
#[test]
fn small_bounds_are_exact() {
    let compiler = Compiler::new();
    let bounds = [-100.5, -10.0, -0.25, 0.0, 0.125, 9.5, 109.75];
    let mut texts: Vec<String> = (-120..=120).map(|number: i32| number.to_string()).collect();
    texts.extend(
        (-450..=450)
            .map(|quarter: i32| f64::from(quarter) / 4.0)
            .filter(|n| n.fract() != 0.0)
            .map(|n| n.to_string()),
    );
    texts.extend(
        ["0.1", "0.12", "0.124", "0.126", "9.50", "9.500001", "-0.26", "-0.24", "10.00"].map(str::to_owned),
    );
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (at, low) in bounds.iter().enumerate() {
        for high in &bounds[at + 1..] {
            for (kind, keys) in [
                ("number", ["minimum", "exclusiveMaximum"]),
                ("number", ["exclusiveMinimum", "maximum"]),
                ("integer", ["exclusiveMinimum", "exclusiveMaximum"]),
                ("integer", ["minimum", "maximum"]),
            ] {
                let schema = json!({"type": kind, keys[0]: low, keys[1]: high});
                if kind == "integer" && !(-200..200).any(|n| fits(f64::from(n), low, high, keys)) {
                    continue;
                }
                for (text, taken) in texts.iter().zip(takes(&compiler, &schema, &texts)) {
                    let number: f64 = text.parse().expect("a number");
                    let wanted = fits(number, low, high, keys) && (kind == "number" || !text.contains('.'));
                    assert_eq!(taken, wanted, "{text} for {schema}");
                }
            }
        }
    }
}

fn fits(number: f64, low: &f64, high: &f64, [lower, upper]: [&str; 2]) -> bool {
    (number > *low || (lower == "minimum" && number == *low))
        && (number < *high || (upper == "maximum" && number == *high))
}

/// Bounds beyond the precision of floats.
#[test]
fn large_bounds_are_exact() {
    let compiler = Compiler::new();
    let cases = [
        (
            r#"{"type": "integer", "minimum": 1700000000000000000, "maximum": 1800000000000000000}"#,
            vec!["1700000000000000000", "1799999999999999999", "1800000000000000000"],
            vec![
                "1699999999999999999",
                "1800000000000000001",
                "5",
                "-1750000000000000000",
                "17500000000000000000",
            ],
        ),
        (
            r#"{"type": "integer", "exclusiveMinimum": 9007199254740993}"#,
            vec!["9007199254740994", "90071992547409930"],
            vec!["9007199254740993", "9007199254740992", "0"],
        ),
        (
            r#"{"type": "integer", "maximum": -9223372036854775807}"#,
            vec!["-9223372036854775807", "-9223372036854775808"],
            vec!["-9223372036854775806", "0", "9223372036854775807"],
        ),
        (
            r#"{"type": "integer", "minimum": 0, "maximum": 18446744073709551615}"#,
            vec!["0", "18446744073709551615"],
            vec!["18446744073709551616", "-1"],
        ),
        (
            r#"{"type": "number", "minimum": 4611686018427387904.5, "maximum": 1e20}"#,
            vec!["4611686018427389000", "100000000000000000000.0"],
            vec!["4611686018427380000", "100000000000000000000.1", "0.5"],
        ),
        (
            r#"{"type": "number", "exclusiveMinimum": 0, "maximum": 1.7976931348623157e308}"#,
            vec!["0.001", "999999999999999"],
            vec!["0", "0.0", "-1"],
        ),
        (r#"{"type": "integer", "minimum": -5}"#, vec!["-5", "9223372036854775807"], vec!["-6"]),
        (
            r#"{"type": "integer", "multipleOf": 5, "minimum": 3, "maximum": 20}"#,
            vec!["5", "20"],
            vec!["0", "6", "25"],
        ),
        (r#"{"type": "integer", "multipleOf": 5}"#, vec!["0", "-5", "120"], vec!["6"]),
        (
            r#"{"type": "integer", "minimum": 4611686018427387904}"#,
            vec!["4611686018427387904", "18446744073709551615"],
            vec!["18446744073709551616", "4611686018427387903", "99999999999999999999"],
        ),
        (
            r#"{"type": "integer", "minimum": -1e300, "maximum": 1e300}"#,
            vec!["-9223372036854775807", "9223372036854775807"],
            vec!["-9223372036854775809", "18446744073709551616"],
        ),
        (
            r#"{"type": "integer"}"#,
            vec!["0", "-9223372036854775807", "1700000000000000000"],
            vec!["-0", "01", "1.0"],
        ),
    ];
    for (schema, taken, stopped) in cases {
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        for (texts, wanted) in [(taken, true), (stopped, false)] {
            for (text, found) in texts.iter().zip(takes(&compiler, &schema, &texts)) {
                assert_eq!(found, wanted, "{text} for {schema}");
            }
        }
    }
}

/// Multiples that a float cannot represent are distinguished by their digits.
#[test]
fn multiples_of_large_numbers_are_exact() {
    let compiler = Compiler::new();
    let cases = [
        (
            r#"{"type": "integer", "multipleOf": 9007199254740993}"#,
            vec!["0", "9007199254740993", "18014398509481986", "-9007199254740993", "9214364837600035839"],
            vec!["9007199254740992", "18014398509481984", "1"],
        ),
        (
            r#"{"type": "integer", "multipleOf": 9223372036854775807, "minimum": 1, "maximum": 18446744073709551615}"#,
            vec!["9223372036854775807", "18446744073709551614"],
            vec!["0", "9223372036854775806", "18446744073709551615"],
        ),
        (
            r#"{"type": "integer", "multipleOf": 2.5, "minimum": -3}"#,
            vec!["0", "5", "10"],
            vec!["-5", "2", "7"],
        ),
        (r#"{"type": "integer", "multipleOf": 1e30}"#, vec!["0"], vec!["1", "1000"]),
        (r#"{"type": "integer", "multipleOf": 0.000999}"#, vec!["0", "999", "-1998"], vec!["1", "998"]),
        (
            r#"{"type": "number", "multipleOf": 0.000999}"#,
            vec!["0.001998", "999"],
            vec!["0.001", "0.0000999"],
        ),
        (
            r#"{"type": "integer", "multipleOf": 1234.5, "minimum": -3000, "maximum": 5000}"#,
            vec!["-2469", "0", "2469", "4938"],
            vec!["1234", "1235", "7407"],
        ),
    ];
    for (schema, taken, stopped) in cases {
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        for (texts, wanted) in [(taken, true), (stopped, false)] {
            for (text, found) in texts.iter().zip(takes(&compiler, &schema, &texts)) {
                assert_eq!(found, wanted, "{text} for {schema}");
            }
        }
    }
    // Too many to list: the finished number is validated, exactly.
    let schema = json!({"type": "integer", "multipleOf": 1_000_003});
    let written = lm_processors::json_grammar(&schema, lm_processors::Layout::Exact).expect("a grammar");
    assert_eq!(written.unenforced[0].keyword, "multipleOf");
    let validator = lm_processors::validator(&schema, true).expect("a schema");
    for number in [9_007_199_281_516_780_u64, 9_007_199_281_516_781, u64::MAX - 350_686, u64::MAX] {
        assert_eq!(validator.is_valid(&json!(number)), number % 1_000_003 == 0, "{number}");
    }
}

#[test]
fn inexact_and_non_positive_divisors_are_errors() {
    for divisor in ["0", "-3", "\"3\"", "36893488147419103233", "18446744073709551616"] {
        let schema: Value = serde_json::from_str(&format!(r#"{{"multipleOf": {divisor}}}"#)).expect("JSON");
        let error =
            lm_processors::json_grammar(&schema, lm_processors::Layout::Exact).expect_err("no divisor");
        assert_eq!((error.path.as_str(), error.keyword.as_str()), ("#", "multipleOf"), "{error}");
    }
}

#[test]
fn empty_ranges_are_errors() {
    for schema in [
        json!({"type": "integer", "minimum": 5, "maximum": 4}),
        json!({"type": "integer", "exclusiveMinimum": 1700000000000000000u64, "exclusiveMaximum": 1700000000000000001u64}),
        json!({"type": "number", "minimum": 1, "exclusiveMaximum": 1}),
        json!({"type": "integer", "multipleOf": 10, "minimum": 11, "maximum": 19}),
    ] {
        let format = Some(ResponseFormat::JsonSchema(schema.clone()));
        let request = GrammarRequest { response_format: format, ..GrammarRequest::default() };
        let error = grammar_of("hermes", &request).expect_err("no value");
        assert!(matches!(error, lm_processors::Error::Schema(_)), "{error} for {schema}");
    }
}

/// Text that a strict bound lets in is not read as the bound.
#[test]
fn strict_bounds_apply_to_the_parsed_float() {
    let compiler = Compiler::new();
    for (low, high) in [
        (0.0, 1.0),
        (5.0, 6.5),
        (99.0, 100.0),
        (-1.0, 0.5),
        (-100.25, -100.0),
        (0.0, 1e6),
        (123456.0, 123457.0),
    ] {
        let schema = json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high});
        let mut texts = Vec::new();
        for decimals in 1..=20 {
            for (bound, step) in [(low, 1), (high, -1)] {
                // The decimal neighbours of each bound.
                let scaled = (bound * 1e6f64) as i128 * 10i128.pow(14) + step * 10i128.pow(20 - decimals);
                let (sign, digits) =
                    (if scaled < 0 { "-" } else { "" }, format!("{:021}", scaled.unsigned_abs()));
                let (whole, fraction) = digits.split_at(digits.len() - 20);
                let fraction = &fraction[..decimals.max(7) as usize];
                texts.push(format!("{sign}{whole}.{fraction}"));
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut taken = 0;
        for (text, found) in texts.iter().zip(takes(&compiler, &schema, &texts)) {
            let read: f64 = text.parse().expect("a number");
            assert!(!found || (low < read && read < high), "{text} for {schema}");
            taken += usize::from(found);
        }
        assert!(taken > 8, "{taken} for {schema}");
    }
}

/// Numbers that a value would not hold exactly are not written, whatever keywords are beside them.
#[test]
fn numbers_are_exact_under_name_patterns_and_divisors() {
    let compiler = Compiler::new();
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {"ii": {"minimum": 3}},
        "patternProperties": {"^n": {"type": "number"}, "^i": {"type": "integer"}}});
    let texts = [
        (r#"{"n":1e999}"#, false),
        (r#"{"i":99999999999999999999}"#, false),
        (r#"{"i":-0}"#, false),
        (r#"{"n":1.5,"i":7}"#, true),
        (r#"{"ii":2}"#, false),
        (r#"{"ii":3,"n1":0.5}"#, true),
        (r#"{"ii":3.5}"#, false),
        (r#"{"other":1}"#, false),
    ];
    let expected = texts.map(|(_, is_taken)| is_taken);
    assert_eq!(takes(&compiler, &schema, &texts.map(|(text, _)| text)), expected);
    for (kind, divisor) in [("integer", json!(5)), ("number", json!(0.5))] {
        let schema = json!({"type": kind, "multipleOf": divisor, "minimum": -10, "maximum": 10});
        let texts = ["-0", "-0.0", "-10", "-5", "0", "5", "10", "3.3", "15"];
        let expected = [false, false, true, true, true, true, true, false, false];
        assert_eq!(takes(&compiler, &schema, &texts), expected, "{schema}");
    }
}

fn fault_of(schema: &str) -> SchemaFault {
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let fault =
        lm_processors::json_grammar(&schema, lm_processors::Layout::Exact).expect_err("no grammar").fault;
    let parameters = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
    let tool = [lm_processors::ToolSpec::new("f", "", parameters)];
    let choice = lm_processors::ToolChoice::Required;
    let request = GrammarRequest { tools: &tool, choice, ..GrammarRequest::default() };
    let error = grammar_of("hermes", &request).expect_err("no grammar");
    let lm_processors::Error::Schema(error) = error else { panic!("{error}") };
    assert_eq!(error.fault, fault, "{error}");
    let is_fine = fault == SchemaFault::NarrowRange;
    assert_eq!(error.path == "#/properties/a", is_fine, "{error}");
    fault
}

/// A range that contains numbers is not said to be empty.
#[test]
fn too_close_bounds_are_not_an_empty_range() {
    for schema in [
        r#"{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-300}"#,
        r#"{"type": "number", "exclusiveMinimum": -1e-300, "exclusiveMaximum": 0}"#,
        r#"{"type": "number", "minimum": 1e-301, "maximum": 1e-300}"#,
        r#"{"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1.0000000000000004}"#,
        r#"{"type": "number", "minimum": 1e300}"#,
        r#"{"type": "number", "exclusiveMaximum": -1.5e300}"#,
        r#"{"type": "number", "exclusiveMinimum": 1.9999999999999996, "exclusiveMaximum": 2}"#,
        r#"{"type": "number", "minimum": 1.0000000000000002, "exclusiveMaximum": 1.0000000000000004}"#,
    ] {
        assert_eq!(fault_of(schema), SchemaFault::NarrowRange, "{schema}");
    }
    for schema in [
        r#"{"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6}"#,
        r#"{"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1e-300}"#,
        r#"{"type": "number", "exclusiveMinimum": 1e-300, "exclusiveMaximum": 1e-300}"#,
        r#"{"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-300}"#,
    ] {
        assert!(matches!(fault_of(schema), SchemaFault::Unsatisfiable(_)), "{schema}");
    }
    // The numbers of the optional property are not why there is no value.
    let fine = json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-300});
    let empty = json!({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6});
    let both = json!({"type": "object", "properties": {"a": fine, "b": empty}, "required": ["b"]});
    assert!(matches!(fault_of(&both.to_string()), SchemaFault::Unsatisfiable(_)));
}

/// Bounds that are close to zero or to each other.
#[test]
fn fine_bounds_are_exact() {
    let compiler = Compiler::new();
    let zeros = |count: usize, digits: &str| format!("0.{}{digits}", "0".repeat(count));
    let cases = [
        (
            r#"{"exclusiveMinimum": 0, "exclusiveMaximum": 1e-20}"#,
            vec![zeros(20, "9"), zeros(21, "1")],
            vec![zeros(19, "1"), "0".to_owned(), "0.0".to_owned()],
        ),
        (
            r#"{"exclusiveMinimum": 0, "maximum": 1e-20}"#,
            vec![zeros(19, "1")],
            vec![zeros(19, "11"), "0".to_owned()],
        ),
        (
            r#"{"exclusiveMinimum": -1e-25, "exclusiveMaximum": 0}"#,
            vec![format!("-{}", zeros(25, "9"))],
            vec![format!("-{}", zeros(24, "1")), "0".to_owned()],
        ),
        (
            r#"{"exclusiveMinimum": 1e-20, "exclusiveMaximum": 2e-20}"#,
            vec![zeros(19, "15")],
            vec![zeros(19, "1"), zeros(19, "2")],
        ),
        (
            r#"{"minimum": 0.1, "maximum": 0.1}"#,
            vec!["0.1".to_owned(), "0.10".to_owned()],
            vec!["0.11".to_owned(), "0.100001".to_owned(), "0".to_owned()],
        ),
        (
            r#"{"minimum": 1.0000000000000002, "maximum": 1.0000000000000004}"#,
            vec!["1.0000000000000002".to_owned()],
            vec!["1".to_owned(), "1.0000000000000006".to_owned()],
        ),
        (
            r#"{"exclusiveMinimum": 1.9999999, "exclusiveMaximum": 2}"#,
            vec!["1.99999995".to_owned()],
            vec!["2".to_owned(), "1.9999999".to_owned()],
        ),
    ];
    for (bounds, taken, stopped) in cases {
        let mut schema: Value = serde_json::from_str(bounds).expect("JSON");
        schema["type"] = json!("number");
        for (texts, wanted) in [(taken, true), (stopped, false)] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            for (text, found) in texts.iter().zip(takes(&compiler, &schema, &texts)) {
                assert_eq!(found, wanted, "{text} for {schema}");
            }
        }
    }
}

/// A small divisor is enforced or reported, never taken for one without multiples.
#[test]
fn small_multiples_are_enforced_or_reported() {
    let compiler = Compiler::new();
    for divisor in ["0.1", "1e-5", "1e-10", "1e-15", "1e-18", "1e-20", "1e-30", "1e-300"] {
        let schema: Value =
            serde_json::from_str(&format!(r#"{{"type": "number", "multipleOf": {divisor}}}"#)).expect("JSON");
        let written = lm_processors::json_grammar(&schema, lm_processors::Layout::Exact).expect("a grammar");
        let matcher =
            compiler.compile_grammar(&written.grammar).unwrap_or_else(|error| panic!("{divisor}: {error}"));
        assert_eq!(verdict(&matcher, "2.5"), Verdict::Accepted, "{divisor}");
        let is_unenforced = written.unenforced.iter().any(|found| found.keyword == "multipleOf");
        assert_eq!(verdict(&matcher, "0.000003") == Verdict::Accepted, is_unenforced, "{divisor}");
    }
}
