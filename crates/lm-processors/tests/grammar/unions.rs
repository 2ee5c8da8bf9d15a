//! Values whose schema is a union: the parser reads each by an alternative that matches as a whole.

use lm_processors::{ParserOptions, ToolCall, ToolSpec, Value};
use serde_json::json;

use crate::grammar::common::Compiler;
use crate::grammar::enforced::{assert_taken, families, grammar};
use crate::grammar::random::Random;
use crate::grammar::walk::{Pieces, walk};
use crate::grammar::writer::reply;

#[test]
fn elements_are_typed_by_the_matching_alternative() {
    let array = |items| json!({"type": "array", "items": items, "minItems": 1});
    let member =
        |name: &str, value| json!({"type": "object", "properties": {name: value}, "required": [name]});
    let cases = [
        (
            json!({"anyOf": [array(json!({"type": "string", "enum": ["1", "true"]})), array(json!({"type": ["integer", "null"]}))]}),
            vec![json!([null]), json!([7, null]), json!(["1"]), json!(["true", "1"])],
        ),
        (
            json!({"anyOf": [member("a", json!({"const": "x"})), member("a", json!({"type": "boolean"}))]}),
            vec![json!({"a": "x"}), json!({"a": true})],
        ),
        // An object may have a member with the name of the elements of lists.
        (
            json!({"anyOf": [member("item", json!({"type": "integer"})), {"type": "null"}]}),
            vec![json!({"item": 12}), json!(null)],
        ),
    ];
    for (schema, values) in cases {
        let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        let cases: Vec<_> = values.into_iter().map(|value| (json!({"v": value}), true)).collect();
        assert_taken(families(), &schema, &cases, &[]);
    }
}

/// Random texts of a grammar are read as values that fit, whatever the alternatives have in common.
#[test]
fn union_elements_are_read_as_matching_values() {
    let array = |items| json!({"type": "array", "items": items, "minItems": 1, "maxItems": 2});
    let member = |value| json!({"type": "object", "properties": {"k": value}, "required": ["k"]});
    let numbers = json!({"type": "integer"});
    let words = json!({"enum": ["1", "true", "null"]});
    let unions = [
        json!({"anyOf": [array(array(words.clone())), array(array(numbers.clone()))]}),
        json!({"anyOf": [array(member(words.clone())), array(member(array(json!({"type": "null"})))), member(numbers.clone())]}),
        json!({"oneOf": [member(member(words.clone())), member(member(numbers.clone()))]}),
        json!({"anyOf": [array(json!({"anyOf": [words, {"type": "boolean"}]})), {"allOf": [{"type": "array"}, {"items": numbers, "maxItems": 2}]}]}),
    ];
    let compiler = Compiler::new();
    for schema in unions {
        let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        let validator = lm_processors::validator(&schema, false).expect("a schema");
        let tools = [ToolSpec::new("f", "", schema.clone())];
        for family in
            families().filter(|family| ["minimax_m3", "dots", "glm4_xml"].contains(&family.processor.name()))
        {
            let matcher = compiler.compile_grammar(&grammar(family, &tools).grammar).expect("a grammar");
            let pieces = Pieces::of(family.processor.dialect().expect("a dialect"));
            for seed in 0..40 {
                let Some(text) = walk(&matcher, &pieces, &mut Random::seeded(seed), 2_000) else { continue };
                let options = ParserOptions { tools: tools.to_vec().into(), ..ParserOptions::default() };
                for call in family.processor.to_message(&text, &options).expect("a call").tool_calls {
                    let read = Value::Object(call.arguments);
                    assert!(
                        validator.is_valid(&read),
                        "{}: {text}\n{read}\n{schema}",
                        family.processor.name()
                    );
                }
            }
        }
    }
}

/// Arguments whose schemas depend on others have those of the alternative that the arguments before them fit.
#[test]
fn arguments_are_typed_by_the_alternative_of_the_call() {
    let option = |kind: &str, value: Value| json!({"properties": {"kind": {"const": kind}, "x": value}, "required": ["kind", "x"]});
    let schema = json!({"type": "object", "anyOf": [
        option("text", json!({"type": "string"})), option("count", json!({"type": "integer"})),
        option("flags", json!({"type": "array", "items": {"type": "boolean"}})),
    ]});
    let cases = [
        (json!({"kind": "count", "x": 12}), true),
        (json!({"kind": "text", "x": "12"}), true),
        (json!({"kind": "text", "x": "true"}), true),
        (json!({"kind": "flags", "x": [true, false]}), true),
        (json!({"kind": "count", "x": "a"}), false),
    ];
    assert_taken(families(), &schema, &cases, &[]);
    for arguments in [json!({"kind": "text", "x": "12"}), json!({"kind": "count", "x": 12})] {
        assert_read_back(&schema, &arguments);
    }
}

/// The arguments after it decide about an argument that the alternatives read differently.
#[test]
fn arguments_are_typed_by_later_arguments() {
    let option = |kind: &str, value: Value| json!({"type": "object", "properties": {"x": value, "y": {"type": "string"}, "kind": {"const": kind}}, "required": ["x", "kind"]});
    let options = |key: &str| {
        json!({key: [
            option("text", json!({"type": "string"})), option("count", json!({"type": "integer"})),
            option("flags", json!({"type": "array", "items": {"type": "boolean"}})),
            option("places", json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}})),
        ]})
    };
    let mut shared = options("anyOf");
    shared["type"] = "object".into();
    shared["properties"] = json!({"x": {"type": ["string", "integer", "array"]}});
    let values = [
        json!({"x": "12", "kind": "text"}),
        json!({"x": 12, "y": "7", "kind": "count"}),
        json!({"x": "[true]", "y": "true", "kind": "text"}),
        json!({"x": [true, false], "kind": "flags"}),
        json!({"x": [{"n": 1}, {"n": 2}], "y": "y", "kind": "places"}),
    ];
    for schema in [options("anyOf"), options("oneOf"), shared] {
        // In markup, what begins as a text is a text for the grammar: a list is not in reach of it.
        let plain = values.iter().filter(|value| !value["x"].is_array());
        let mut cases: Vec<_> = plain.map(|value| (value.clone(), true)).collect();
        cases.push((json!({"x": "a", "kind": "count"}), false));
        assert_taken(families(), &schema, &cases, &[]);
        values.iter().for_each(|arguments| assert_read_back(&schema, arguments));
    }
}

/// Every family reads a call with these arguments back as it was written.
fn assert_read_back(schema: &Value, arguments: &Value) {
    let tools = [ToolSpec::new("f", "", schema.clone())];
    for family in families() {
        let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
        let dialect = family.processor.dialect().expect("a dialect");
        let text = reply(dialect, &[call], &tools).expect("plain values");
        let options = ParserOptions { tools: tools.to_vec().into(), ..ParserOptions::default() };
        let read = family.processor.to_message(&text, &options).expect("a call").tool_calls;
        let name = family.processor.name();
        assert_eq!(Value::Object(read[0].arguments.clone()), *arguments, "{name}: {text}");
    }
}
