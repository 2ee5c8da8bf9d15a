//! Texts that the grammar of a schema takes and stops, where keywords of several schemas meet.

use lm_processors::{
    GrammarRequest, Layout, ParserOptions, ResponseFormat, SchemaFault, ToolCall, ToolChoice, ToolSpec,
    Value, json_grammar,
};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, grammar_of, verdict};
use crate::grammar::enforced::{families, grammar};
use crate::grammar::writer::reply;

/// Every text of `taken` is accepted and every one of `stopped` is not, with nothing left unenforced.
fn check(schema: &Value, taken: &[&str], stopped: &[&str]) {
    let compiler = Compiler::new();
    let written = json_grammar(schema, Layout::Exact).unwrap_or_else(|error| panic!("{error}: {schema}"));
    assert_eq!(written.unenforced, [], "{schema}");
    let matcher =
        compiler.compile_grammar(&written.grammar).unwrap_or_else(|error| panic!("{error}: {schema}"));
    for text in taken {
        assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{text} for {schema}");
    }
    for text in stopped {
        assert_ne!(verdict(&matcher, text), Verdict::Accepted, "{text} for {schema}");
    }
}

#[test]
fn stricter_of_two_bounds_applies() {
    let bounds = json!({"allOf": [{"type": "integer", "minimum": 3, "maximum": 20}, {"minimum": 5}, {"maximum": 9}, {"minimum": 4}]});
    check(&bounds, &["5", "9"], &["4", "10", "3", "20"]);
    let lengths = json!({"allOf": [{"type": "string", "minLength": 1, "maxLength": 4}, {"minLength": 2, "maxLength": 9}]});
    check(&lengths, &[r#""ab""#, r#""abcd""#], &[r#""a""#, r#""abcde""#]);
    let counts = json!({"allOf": [{"type": "array", "items": {"type": "integer"}, "minItems": 2}, {"minItems": 1, "maxItems": 3}, {"maxItems": 7}]});
    check(&counts, &["[1, 2]", "[1, 2, 3]"], &["[1]", "[1, 2, 3, 4]"]);
}

#[test]
fn property_is_additional_in_another_schema() {
    let schema = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": ["integer", "string"]}}, "required": ["a"]},
        {"additionalProperties": {"type": "string"}, "type": "object"},
    ]});
    check(&schema, &[r#"{"a": "x"}"#], &[r#"{"a": 1}"#]);
    let undeclared =
        json!({"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}});
    check(&undeclared, &[r#"{"x": 1}"#], &[r#"{"x": "1"}"#, "{}"]);
}

#[test]
fn elements_and_members_are_counted() {
    let heads = json!({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "minItems": 2, "maxItems": 3});
    check(&heads, &[r#"[1, "a"]"#, r#"[1, "a", "b"]"#], &["[1]", "[]", r#"[1, "a", "b", "c"]"#]);
    let number = json!({"type": "integer"});
    let members = json!({"type": "object", "properties": {"a": number, "b": number, "c": number}, "maxProperties": 2, "additionalProperties": false});
    check(&members, &[r#"{"a": 1, "c": 2}"#, "{}"], &[r#"{"a": 1, "b": 2, "c": 3}"#]);
    let least = json!({"type": "object", "properties": {"a": number, "b": number, "c": number}, "required": ["b"], "minProperties": 2, "additionalProperties": false});
    check(&least, &[r#"{"a": 1, "b": 2}"#, r#"{"b": 1, "c": 2}"#], &[r#"{"b": 1}"#, r#"{"a": 1, "c": 2}"#]);
}

#[test]
fn dates_escapes_and_fractions_are_exact() {
    let date = json!({"type": "string", "format": "date"});
    check(&date, &[r#""2023-02-28""#, r#""2024-02-29""#], &[r#""2023-02-29""#, r#""2024-02-30""#]);
    let text = json!({"type": "string"});
    check(&text, &[r#""\n""#], &[r#""\ud83d""#, r#""\udc00\udc00""#]);
    // With more digits, the nearest float is the bound.
    let below = json!({"type": "number", "exclusiveMaximum": 1_000_000, "minimum": 0});
    check(&below, &["999999.99", "0.5"], &["999999.999999999999999", "1000000"]);
}

#[test]
fn overlapping_one_of_is_unenforced() {
    // `{"a": 1}` matches both: a name of a pattern has its schema, not that of further properties.
    let schema = json!({"oneOf": [
        {"type": "object", "required": ["a"], "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
    ]});
    let written = json_grammar(&schema, Layout::Exact).expect("it has values");
    let keywords: Vec<&str> = written.unenforced.iter().map(|unenforced| &*unenforced.keyword).collect();
    assert!(keywords.contains(&"oneOf"), "{keywords:?}");
}

/// `text` is stopped, or the keyword that excludes it is reported as left to validation.
fn check_excluded(schema: &Value, text: &str, keyword: &str) {
    let written = json_grammar(schema, Layout::Exact).unwrap_or_else(|error| panic!("{error}: {schema}"));
    let matcher = Compiler::new().compile_grammar(&written.grammar).expect("a grammar");
    let reported = written.unenforced.iter().any(|unenforced| unenforced.keyword == keyword);
    assert!(reported || verdict(&matcher, text) != Verdict::Accepted, "{text} for {schema}");
}

#[test]
fn inexpressible_exclusions_are_reported() {
    check_excluded(&json!({"oneOf": [{"enum": [1, "a"]}, {"type": "integer"}]}), "1", "oneOf");
    check_excluded(&json!({"oneOf": [{"type": ["string", "integer"]}, {"enum": ["a", 2]}]}), "2", "oneOf");
    let integer = json!({"type": "integer"});
    let open = json!({"type": "object", "properties": {"a": integer}, "additionalProperties": integer, "minProperties": 2});
    check_excluded(&open, r#"{"a": 1}"#, "minProperties");
    // One member, whose name is written twice.
    check_excluded(&open, r#"{"x": 1, "x": 2}"#, "minProperties");
    let one = json!({"type": "object", "additionalProperties": integer, "minProperties": 1});
    check(&one, &[r#"{"x": 1}"#], &["{}"]);
}

#[test]
fn combined_schemas_are_both_enforced() {
    let integer = json!({"type": "integer"});
    let required = json!({"allOf": [
        {"type": "object", "properties": {"a": integer, "b": integer}, "required": ["a"], "additionalProperties": false},
        {"required": ["b"]},
    ]});
    check(&required, &[r#"{"a": 1, "b": 2}"#], &[r#"{"a": 1}"#, r#"{"b": 2}"#]);
    let types = json!({"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "string"]}]});
    check(&types, &["3", r#""a""#], &["1.5"]);
    let heads = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "items": false, "minItems": 1});
    check(&heads, &["[1]", r#"[1, "a"]"#, r#"[1, "a", null]"#], &["[]", r#"["a"]"#]);
}

#[test]
fn endless_and_overlong_values_are_rejected() {
    let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["x"], "additionalProperties": {"$ref": "#/$defs/a"}}}});
    let error = json_grammar(&endless, Layout::Exact).expect_err("no value ends");
    assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{error}");
    let names: Vec<String> = (0..400).map(|at| format!("{at:0>900}")).collect();
    let long = json!({"type": "object", "required": names, "additionalProperties": {"type": "integer"}});
    let error = json_grammar(&long, Layout::Exact).expect_err("the names alone are too long");
    assert!(matches!(error.fault, SchemaFault::TooLarge(_)), "{error}");
}

/// Grammars of an answer of this form, beside a tool, in all families that take it.
fn answers(format: &ResponseFormat) -> Vec<(&'static str, llguidance::Matcher)> {
    let compiler = Compiler::new();
    let tools = [ToolSpec::new("f", "", json!({"type": "object", "properties": {}}))];
    let families = lm_processors::ALL.iter().filter_map(|family| {
        let request = GrammarRequest {
            tools: &tools,
            choice: ToolChoice::Auto,
            response_format: Some(format.clone()),
            ..GrammarRequest::default()
        };
        let written = family.processor.grammar(&request).ok()??;
        Some((family.processor.name(), compiler.compile_grammar(&written.grammar).expect("a grammar")))
    });
    families.collect()
}

#[test]
fn only_the_answer_start_is_kept_from_being_a_call() {
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}, "name": {"enum": ["f"]}}, "required": ["a", "name"]});
    let list = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "object", "properties": {"name": {"enum": ["f"]}}, "required": ["name"]}], "items": false});
    for (schema, text) in [(object, r#"{"a": 1, "name": "f"}"#), (list, r#"[1, {"name": "f"}]"#)] {
        let families = answers(&ResponseFormat::JsonSchema(schema));
        assert!(families.len() > 50, "{}", families.len());
        for (family, matcher) in families {
            assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{family}: {text}");
        }
    }
}

#[test]
fn patterns_that_always_start_as_a_call_are_rejected() {
    let tools = [ToolSpec::new("f", "", json!({"type": "object", "properties": {}}))];
    let grammar = |pattern: &str| {
        let response_format = Some(ResponseFormat::Regex(pattern.to_owned()));
        grammar_of("hermes", &GrammarRequest { tools: &tools, response_format, ..GrammarRequest::default() })
    };
    let either = grammar("(<tool_call>x|ok)").expect("it has another text");
    let matcher = Compiler::new().compile_grammar(&either.grammar).expect("a grammar");
    assert_eq!(verdict(&matcher, "ok"), Verdict::Accepted);
    assert_ne!(verdict(&matcher, "<tool_call>x"), Verdict::Accepted);
    let error = grammar("<tool_call>(x|y)").expect_err("each begins a call");
    assert!(matches!(error, lm_processors::Error::AnswerLikeCall { .. }), "{error}");
    // A slash after an escaped backslash is not an escaped slash.
    let slash = grammar(r"a\\/b").expect("a pattern");
    let matcher = Compiler::new().compile_grammar(&slash.grammar).expect("a grammar");
    assert_eq!(verdict(&matcher, r"a\/b"), Verdict::Accepted);
}

#[test]
fn listed_answers_can_spell_a_marker_token() {
    let tools = [ToolSpec::new("f", "", json!({"type": "object", "properties": {}}))];
    let grammar = |tokens| {
        let response_format = Some(ResponseFormat::Choice(vec!["<tool_call>".to_owned(), "b".to_owned()]));
        let request = GrammarRequest { tools: &tools, response_format, tokens, ..GrammarRequest::default() };
        grammar_of("hermes", &request)
    };
    let error = grammar(lm_processors::MarkerTokens::default()).expect_err("it reads as a call");
    assert!(matches!(error, lm_processors::Error::AnswerLikeCall { .. }), "{error}");
    let whole = |text: &str| text.starts_with("<tool_call>").then_some("<tool_call>".len());
    grammar(lm_processors::MarkerTokens::in_markers(["<tool_call>"], whole))
        .expect("only the token is a marker");
}

#[test]
fn free_text_does_not_start_as_a_bare_call() {
    let tools = [ToolSpec::new("f", "", json!({"type": "object", "properties": {}}))];
    let compiler = Compiler::new();
    let text = |choice| {
        let grammar =
            grammar_of("llama3_json", &GrammarRequest { tools: &tools, choice, ..Default::default() });
        let matcher = compiler.compile_grammar(&grammar.expect("a grammar").grammar).expect("a grammar");
        [r#"{"x": 1}"#, "x {"].map(|text| verdict(&matcher, text) == Verdict::Accepted)
    };
    assert_eq!(text(ToolChoice::Auto), [false, true]);
    assert_eq!(text(ToolChoice::None), [true, true]);
}

/// A name may occur twice among those that the schema does not declare, as in JSON: the last value counts.
#[test]
fn last_value_of_a_repeated_name_counts() {
    let compiler = Compiler::new();
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let tools = [ToolSpec::new("f", "", schema)];
    let mut read_back = 0;
    for family in families() {
        let name = family.processor.name();
        let arguments = json!({"once": 1, "other": 2, "twice": 3});
        let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
        let dialect = family.processor.dialect().expect("a dialect");
        let text = reply(dialect, &[call], &tools).expect("plain values").replace("twice", "once");
        let matcher = compiler.compile_grammar(&grammar(family, &tools).grammar).expect("a grammar");
        let taken = verdict(&matcher, &text) == Verdict::Accepted;
        let options = ParserOptions {
            tools: tools.to_vec().into(),
            recovery: lm_processors::Recovery::Off,
            ..ParserOptions::default()
        };
        match family.processor.to_message(&text, &options) {
            Ok(read) => {
                let arguments = Value::Object(read.tool_calls[0].arguments.clone());
                assert_eq!(arguments, json!({"once": 3, "other": 2}), "{name}: {text}");
                read_back += 1;
            }
            // Of a family whose calls have each argument once.
            Err(error) => assert!(!taken && error.to_string().contains("given twice"), "{name}: {error}"),
        }
    }
    assert!(read_back > 50, "{read_back}");
}
