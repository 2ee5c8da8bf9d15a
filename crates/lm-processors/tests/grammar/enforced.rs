//! Keywords of a schema that the grammars of calls enforce, and the report of the others.

use lm_processors::{
    CallBody, Family, GrammarRequest, ParserOptions, Recovery, ReplyGrammar, Thinking, ToolCall, ToolChoice,
    ToolSpec, Value,
};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::grammar::writer::reply;

/// One required call of a tool with these parameters.
pub fn grammar(family: &Family, tools: &[ToolSpec]) -> ReplyGrammar {
    let request = GrammarRequest {
        tools,
        choice: ToolChoice::Required,
        thinking: Thinking::Forbidden,
        ..GrammarRequest::default()
    };
    let name = family.processor.name();
    let written = family.processor.grammar(&request).unwrap_or_else(|error| panic!("{name}: {error}"));
    written.expect("a call is required")
}

pub fn families() -> impl Iterator<Item = &'static Family> {
    let dialect = |family: &Family| family.processor.dialect();
    let all = lm_processors::ALL.iter().copied();
    all.filter(move |family| dialect(family).is_some_and(|dialect| !dialect.calls.is_empty()))
}

/// Of these arguments the grammar of each of `families` takes those that are marked, and the parser reads
/// them as values that fit.
pub fn assert_taken<'f>(
    families: impl Iterator<Item = &'f Family>,
    schema: &Value,
    cases: &[(Value, bool)],
    unenforced: &[&str],
) {
    let compiler = Compiler::new();
    let tools = [ToolSpec::new("f", "", schema.clone())];
    let validator = lm_processors::validator(schema, false).expect("a schema");
    for family in families {
        let name = family.processor.name();
        let written = grammar(family, &tools);
        let found: Vec<&str> =
            written.unenforced.iter().map(|unenforced| unenforced.keyword.as_str()).collect();
        assert_eq!(found, unenforced, "{name}");
        let matcher = compiler.compile_grammar(&written.grammar).expect("a grammar");
        for (arguments, is_taken) in cases {
            let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
            let dialect = family.processor.dialect().expect("a dialect");
            let Some(text) = reply(dialect, std::slice::from_ref(&call), &tools) else { continue };
            let taken = verdict(&matcher, &text) == Verdict::Accepted;
            assert_eq!(taken, *is_taken, "{name}: {text}\n{}", written.grammar.lark);
            if taken {
                let options = ParserOptions {
                    tools: tools.to_vec().into(),
                    recovery: Recovery::Off,
                    ..ParserOptions::default()
                };
                let read = family.processor.to_message(&text, &options).expect("a call").tool_calls;
                let read = Value::Object(read[0].arguments.clone());
                // Without types in the syntax, a text that reads as another type is a text where both fit.
                let fits = &read == arguments || validator.is_valid(&read);
                assert!(fits, "{name}: {text}\n{read}");
            }
        }
    }
}

#[test]
fn parameter_counts_are_enforced_in_every_syntax() {
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "boolean"}});
    let schema = json!({"type": "object", "properties": properties, "minProperties": 1});
    let cases = [
        (json!({}), false),
        (json!({"a": 1}), true),
        (json!({"b": true}), true),
        (json!({"a": 1, "b": false}), true),
    ];
    assert_taken(families(), &schema, &cases, &[]);
    let schema = json!({"type": "object", "properties": properties, "maxProperties": 1});
    let cases = [
        (json!({}), true),
        (json!({"a": 1}), true),
        (json!({"b": true}), true),
        (json!({"a": 1, "b": false}), false),
    ];
    assert_taken(families(), &schema, &cases, &[]);
}

#[test]
fn conditions_are_reported_in_every_syntax() {
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": properties, "minProperties": 2, "if": {"required": ["a"]},
        "then": {"required": ["b"]}, "dependentRequired": {"c": ["a"]}});
    let cases = [(json!({"a": 1}), false), (json!({"a": 1, "c": 2}), true)];
    assert_taken(families(), &schema, &cases, &["dependentRequired", "if", "then"]);
}

#[test]
fn member_counts_are_enforced() {
    let counted = json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2});
    let schema = json!({"type": "object", "properties": {"v": counted}, "required": ["v"]});
    let value = |value: Value| json!({"v": value});
    let cases = [
        (value(json!({})), false),
        (value(json!({"a": 1})), true),
        (value(json!({"a": 1, "b": 2})), true),
        (value(json!({"a": 1, "b": 2, "c": 3})), false),
    ];
    assert_taken(families(), &schema, &cases, &[]);
    let schema = json!({"type": "object", "properties": {"v": {"type": "object", "maxProperties": 1}}, "required": ["v"]});
    let cases =
        [(value(json!({})), true), (value(json!({"a": 1})), true), (value(json!({"a": 1, "b": 2})), false)];
    assert_taken(families(), &schema, &cases, &[]);
}

#[test]
fn required_parameter_can_be_undeclared() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]});
    let cases = [(json!({"a": 1, "b": [2]}), true), (json!({"a": 1}), false)];
    assert_taken(families(), &schema, &cases, &[]);
}

/// A name that `required` lists twice is asked for once.
#[test]
fn required_name_can_be_listed_twice() {
    let names = json!(["b", "a", "b", "a"]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": names});
    let cases = [(json!({"a": 1, "b": true}), true), (json!({"a": 1}), false)];
    assert_taken(families(), &schema, &cases, &[]);
    let inner = json!({"type": "object", "required": names, "maxProperties": 2});
    let schema = json!({"type": "object", "properties": {"v": inner}, "required": ["v"]});
    let cases = [(json!({"v": {"b": 1, "a": 2}}), true), (json!({"v": {"b": 1}}), false)];
    assert_taken(families(), &schema, &cases, &[]);
}

#[test]
fn look_around_at_pattern_edges_is_enforced() {
    let pattern = "^(?=.*[0-9])(?!.*--)[a-z0-9-]{2,6}(?<!-)$";
    let schema = json!({"type": "object", "properties": {"v": {"type": "string", "pattern": pattern}}, "required": ["v"]});
    let texts = [("a1", true), ("a-1b", true), ("ab", false), ("a--1", false), ("a1-", false), ("1", false)];
    let cases = texts.map(|(text, is_taken)| (json!({"v": text}), is_taken));
    assert_taken(families(), &schema, &cases, &[]);
}

#[test]
fn anchors_within_alternatives_are_enforced() {
    let pattern = "^(red|green)$|^#[0-9a-f]{6}$";
    let schema = json!({"type": "object", "properties": {"v": {"type": "string", "pattern": pattern}}, "required": ["v"]});
    let texts = [("red", true), ("#00ff7f", true), ("redder", false), ("#00ff7", false), ("a#00ff7f", false)];
    let cases = texts.map(|(text, is_taken)| (json!({"v": text}), is_taken));
    assert_taken(families(), &schema, &cases, &[]);
}

#[test]
fn quoted_property_names_are_enforced() {
    let quoted = || {
        families().filter(|family| {
            family.processor.name() == "hermes" || family.processor.name() == "lfm2_pythonic"
        })
    };
    let value = |names: Value| {
        let value =
            json!({"type": "object", "propertyNames": names, "additionalProperties": {"type": "integer"}});
        json!({"type": "object", "properties": {"v": value}, "required": ["v"]})
    };
    let cases = |fits: &str, other: &str| {
        [(json!({"v": {}}), true), (json!({"v": {fits: 1}}), true), (json!({"v": {other: 1}}), false)]
    };
    assert_taken(quoted(), &value(json!({"pattern": "^[a-z]{1,3}$"})), &cases("abc", "abcd"), &[]);
    assert_taken(quoted(), &value(json!({"enum": ["a b", "c"]})), &cases("a b", "a"), &[]);
    assert_taken(quoted(), &value(json!({"maxLength": 2})), &cases("\u{e4}1", "abc"), &[]);
    let gemma = || families().filter(|family| family.processor.name() == "gemma4");
    assert_taken(gemma(), &value(json!({"maxLength": 2})), &[], &["propertyNames"]);
}

/// A non-string value beside longer strings: the lexer takes the longest text.
#[test]
fn short_values_coexist_with_longer_texts() {
    let v = json!({"minLength": 4, "minimum": 3});
    let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
    let value = |value: Value| json!({"v": value});
    let cases = [(value(json!(3)), true), (value(json!("four")), true), (value(json!(null)), true)];
    assert_taken(families(), &schema, &cases, &[]);
    let v = json!({"anyOf": [{"enum": [true, 1, "b"]}, {"type": "string", "minLength": 3}]});
    let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
    let cases = [
        (value(json!(1)), true),
        (value(json!("b")), true),
        (value(json!("abc")), true),
        (value(json!("ab")), false),
    ];
    // Between two markers a listed text and a longer one start alike: not distinguished yet.
    let fenced = |family: &&Family| {
        family.processor.dialect().is_some_and(|dialect| matches!(dialect.calls[0].body, CallBody::Braces(_)))
    };
    assert_taken(families().filter(|family| !fenced(family)), &schema, &cases, &[]);
}

/// Dates are those of the calendar, leap years included.
#[test]
fn dates_are_calendar_days() {
    let v = json!({"type": "string", "format": "date"});
    let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
    let days = [
        ("2024-02-29", true),
        ("2000-02-29", true),
        ("0004-02-29", true),
        ("2023-02-29", false),
        ("1900-02-29", false),
        ("0000-01-01", false),
        ("2024-04-31", false),
        ("9999-12-31", true),
    ];
    let cases = days.map(|(day, is_taken)| (json!({"v": day}), is_taken));
    assert_taken(families().step_by(7), &schema, &cases, &[]);
}

/// The number of optional properties is limited; required ones are enforced wherever they are declared.
#[test]
fn required_property_after_optional_ones_is_enforced() {
    let names: Vec<String> = (0..1_100).map(|number| format!("p{number}")).collect();
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
    let inner = json!({"type": "object", "properties": &properties, "required": ["p1099"]});
    let schema = json!({"type": "object", "properties": {"v": inner}, "required": ["v"]});
    let cases = [
        (json!({"v": {"p0": 1}}), false),
        (json!({"v": {"p1099": 1}}), true),
        (json!({"v": {"p0": 1, "p1099": 1}}), true),
    ];
    let hermes = || families().filter(|family| family.processor.name() == "hermes");
    assert_taken(hermes(), &schema, &cases, &["properties"]);
    let schema = json!({"type": "object", "properties": properties, "required": ["p1099"]});
    let cases =
        [(json!({"p0": 1}), false), (json!({"p1099": 1}), true), (json!({"p0": 1, "p1099": 1}), true)];
    assert_taken(families().step_by(9), &schema, &cases, &["properties"]);
}

#[test]
fn unions_of_many_branches_are_enforced() {
    let branch = |number: usize| {
        let kind = json!({"const": format!("k{number}")});
        json!({"type": "object", "properties": {"kind": kind, "n": {"const": number}}, "required": ["kind", "n"]})
    };
    for keyword in ["anyOf", "oneOf"] {
        let branches: Vec<Value> = (0..300).map(branch).collect();
        let schema = json!({"type": "object", "properties": {"v": {keyword: branches}}, "required": ["v"]});
        let value = |kind: &str, number: usize| json!({"v": {"kind": kind, "n": number}});
        let cases = [(value("k299", 299), true), (value("k1", 1), true), (value("k1", 2), false)];
        let some = || families().filter(|family| ["hermes", "glm4_xml"].contains(&family.processor.name()));
        assert_taken(some(), &schema, &cases, &[]);
    }
}

/// Patterns are those of ECMA-262: braces and POSIX classes are literal characters.
#[test]
fn literals_of_ecma_262_are_literals_of_a_pattern() {
    let schema = |pattern: &str| json!({"type": "object", "properties": {"v": {"type": "string", "pattern": pattern}}, "required": ["v"]});
    let some = || families().step_by(5);
    let texts = [("{a}", true), ("a", false), ("{ab}", true), ("{}", false)];
    let cases = texts.map(|(text, is_taken)| (json!({"v": text}), is_taken));
    assert_taken(some(), &schema("^{[a-z]+}$"), &cases, &[]);
    let texts = [(":]", true), ("a]", true), ("b", false), ("b]", false)];
    let cases = texts.map(|(text, is_taken)| (json!({"v": text}), is_taken));
    assert_taken(some(), &schema("^[[:alph:]]$"), &cases, &[]);
    let glm = || families().filter(|family| family.processor.name() == "glm4_xml");
    assert_taken(glm(), &schema(r"^\0$"), &[(json!({"v": "\0"}), true), (json!({"v": "0"}), false)], &[]);
}

#[test]
fn name_patterns_are_enforced_for_quoted_names() {
    let value = json!({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}});
    let schema = json!({"type": "object", "properties": {"v": value}, "required": ["v"]});
    let cases = [
        (json!({"v": {"x-a": 1}}), true),
        (json!({"v": {"x-a": true}}), false),
        (json!({"v": {"other": true, "x-b": 2}}), true),
        (json!({"v": {"other": 1}}), false),
    ];
    let quoted = ["hermes", "lfm2_pythonic", "qwen3_coder_xml"];
    assert_taken(families().filter(|family| quoted.contains(&family.processor.name())), &schema, &cases, &[]);
}

#[test]
fn unenforced_name_patterns_are_reported() {
    let number = json!({"type": "integer"});
    for schema in [
        json!({"type": "object", "properties": {"k0": number}, "patternProperties": {"^k": {"minimum": 3}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"k": number}, "required": ["xa"], "patternProperties": {"^x": number}}),
    ] {
        let inner = json!({"type": "object", "properties": {"v": schema.clone()}, "required": ["v"]});
        for (schema, wrong) in
            [(&schema, json!({"k0": 1, "xa": true})), (&inner, json!({"v": {"k0": 1, "xa": true}}))]
        {
            let tools = [ToolSpec::new("f", "", schema.clone())];
            for family in families() {
                let written = grammar(family, &tools);
                if written.unenforced.iter().any(|unenforced| unenforced.keyword == "patternProperties") {
                    continue;
                }
                let name = family.processor.name();
                let dialect = family.processor.dialect().expect("a dialect");
                let call = ToolCall::new("f", wrong.as_object().expect("an object").clone());
                let Some(text) = reply(dialect, &[call], &tools) else { continue };
                let matcher = Compiler::new().compile_grammar(&written.grammar).expect("a grammar");
                assert_ne!(verdict(&matcher, &text), Verdict::Accepted, "{name}: {text}");
            }
        }
    }
}

#[test]
fn names_are_not_enforced_beside_required_ones() {
    let v = json!({"type": "object", "propertyNames": {"maxLength": 2}, "required": ["long"], "additionalProperties": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
    let hermes = families().filter(|family| family.processor.name() == "hermes");
    assert_taken(
        hermes,
        &schema,
        &[(json!({"v": {"long": 1}}), true), (json!({"v": {}}), false)],
        &["propertyNames"],
    );
}

/// A listed text that begins as a list does is read by the lexemes of lists, with their escapes.
#[test]
fn listed_text_beside_lists_can_end_with_a_backslash() {
    let text = r#"["a\\", "b"] x"#;
    let v = json!({"anyOf": [{"enum": [text]}, {"type": "array", "items": {"type": "string"}}]});
    let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
    let cases = [(json!({"v": text}), true), (json!({"v": ["a\\", "b"]}), true)];
    assert_taken(families(), &schema, &cases, &[]);
}

/// The last lexeme of such a text may be an unterminated string, distinguished from a longer one only by the
/// end of the value.
#[test]
fn listed_text_beside_lists_can_end_inside_a_string() {
    for text in [r#"["a", "b"#, r#"["#, r#"[""#, r#"["a\""#, r#"[1, "#] {
        let v = json!({"anyOf": [{"enum": [text, "x"]}, {"type": "array", "items": {"type": "string"}}]});
        let schema = json!({"type": "object", "properties": {"v": v}, "required": ["v"]});
        let cases = [(json!({"v": text}), true), (json!({"v": ["a", "b"]}), true), (json!({"v": "x"}), true)];
        assert_taken(families(), &schema, &cases, &[]);
    }
}
