//! `patternProperties` in every syntax.

use lm_processors::{CallBody, Family, ToolCall, ToolSpec, Value, ValueText};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::grammar::enforced::{assert_taken, families, grammar};
use crate::grammar::writer::reply;

/// Objects that leave further names open run in every syntax, as arguments and as a value of one.
#[test]
fn open_objects_with_name_patterns_run_in_every_syntax() {
    let compiler = Compiler::new();
    let name = "a long name with b, cd, 123 and more that goes on and on, up to its end";
    for pattern in ["b", "^a|c$", r"^\w+ \w+$", "^[^a-z]*$", r"^.{2}\s?$", "(ab|cd)+", "^x-", r"\d{3}", ""] {
        let open = json!({"type": "object", "patternProperties": {pattern: {"type": "integer"}}});
        let inner = json!({"type": "object", "properties": {"v": open}, "required": ["v"]});
        let members = json!({name: 7, "other": 1});
        for (schema, arguments) in [(&inner, json!({"v": members})), (&open, members)] {
            let tools = [ToolSpec::new("f", "", schema.clone())];
            for family in families() {
                let matcher = compiler.compile_grammar(&grammar(family, &tools).grammar).expect("a grammar");
                let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
                let dialect = family.processor.dialect().expect("a dialect");
                let Some(text) = reply(dialect, &[call], &tools) else { continue };
                // A name of 71 characters is too long where the pattern says nothing about it; the lexer's
                // limits are not.
                let _ = verdict(&matcher, &text);
            }
        }
    }
}

/// Families whose parser keeps arguments that the tool does not declare, under names that the grammar leaves
/// open.
fn open_families() -> impl Iterator<Item = &'static Family> {
    let keeps = |family: &&Family| match family.processor.dialect().expect("a dialect").calls[0].body {
        CallBody::Parameters(call) => {
            call.written != ValueText::Elements && family.processor.name() != "minicpm5_xml"
        }
        _ => true,
    };
    families().filter(keeps)
}

#[test]
fn arguments_use_the_schema_of_their_name_pattern() {
    let schema = json!({
        "type": "object", "properties": {"xs": {}, "z": {"type": "integer"}},
        "patternProperties": {"^x": {"type": ["integer", "null"]}, "^y": {"type": "string"}},
        "additionalProperties": {"type": "boolean"},
    });
    let cases = [
        (json!({"xa": 7}), true),
        (json!({"xa": null, "other": true}), true),
        (json!({"xa": "7 or so"}), false),
        (json!({"xs": 3, "yb": "null"}), true),
        (json!({"xs": "three"}), false),
        (json!({"z": 1, "ya": "12"}), true),
        (json!({"other": 1}), false),
    ];
    assert_taken(open_families(), &schema, &cases, &[]);
}

#[test]
fn values_are_typed_by_their_name_pattern() {
    let schema = json!({
        "type": "object", "properties": {"t0": {"type": "string"}}, "additionalProperties": {"type": "integer"},
        "patternProperties": {"^s": {"type": "string"}, "^t": {"minLength": 1}, "^a": {"type": "array", "items": {"type": "integer"}}},
    });
    let tools = [ToolSpec::new("f", "", schema)];
    for family in open_families() {
        let name = family.processor.name();
        let arguments = json!({"t0": "12", "s1": "12", "a1": [1], "n": 5});
        let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
        let dialect = family.processor.dialect().expect("a dialect");
        let text = reply(dialect, &[call], &tools).expect("plain values");
        let matcher = Compiler::new().compile_grammar(&grammar(family, &tools).grammar).expect("a grammar");
        assert_eq!(verdict(&matcher, &text), Verdict::Accepted, "{name}: {text}");
        let options = lm_processors::ParserOptions {
            tools: tools.to_vec().into(),
            ..lm_processors::ParserOptions::default()
        };
        let read = family.processor.to_message(&text, &options).expect("a call").tool_calls;
        assert_eq!(Value::Object(read[0].arguments.clone()), arguments, "{name}: {text}");
    }
}

/// Texts of a pattern, bounded or not, run beside the texts that end a string of the syntax.
#[test]
fn patterns_of_texts_run_in_every_kind_of_syntax() {
    let compiler = Compiler::new();
    let kinds = ["gpt_oss", "hermes", "glm4_xml", "lfm2_pythonic", "gemma4", "minimax_m3"];
    let text = "a long text with b, cd, 123 and more that goes on and on, up to its end";
    let run = |schema: &Value, value: &Value| {
        let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        let tools = [ToolSpec::new("f", "", schema)];
        for family in families().filter(|family| kinds.contains(&family.processor.name())) {
            let arguments = json!({"v": value});
            let call = ToolCall::new("f", arguments.as_object().expect("an object").clone());
            let dialect = family.processor.dialect().expect("a dialect");
            let Some(text) = reply(dialect, &[call], &tools) else { continue };
            let matcher = compiler.compile_grammar(&grammar(family, &tools).grammar).expect("a grammar");
            let _ = verdict(&matcher, &text);
        }
    };
    for pattern in ["^a|d$", r"^\w+ \w+", r"^.{2}\s?", r"\d{3}", ".*c.{20}"] {
        for rest in [json!({}), json!({"maxLength": 4_000}), json!({"type": ["string", "integer", "array"]})]
        {
            let mut v = json!({"type": "string", "pattern": pattern});
            v.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
            let names = json!({"type": "object", "propertyNames": v, "additionalProperties": true});
            run(&json!({"type": "array", "items": v}), &json!([text]));
            run(&v, &json!(text));
            run(&names, &json!({text: 1}));
        }
    }
}
