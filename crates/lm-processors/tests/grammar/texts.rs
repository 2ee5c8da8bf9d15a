//! Strings whose constraints leave few texts, or none; parameters that are not objects.

use lm_processors::{CallBody, Error, Family, Layout, SchemaFault, ToolSpec, Value, json_grammar, validator};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, verdict};
use crate::grammar::enforced::families;
use crate::grammar::unwritable::{grammar, tool, written};

fn schema_error(family: &Family, tools: &[ToolSpec]) -> lm_processors::SchemaError {
    let name = family.processor.name();
    match grammar(family, tools) {
        Err(Error::Schema(error)) => error,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn contradictions_are_rejected_with_pointer() {
    for schema in [
        json!({"type": "string", "pattern": "^a$", "minLength": 2}),
        json!({"type": "string", "format": "uuid", "maxLength": 32}),
        json!({"type": "string", "format": "date", "pattern": "^x"}),
        json!({"type": "string", "minLength": 5, "maxLength": 3}),
    ] {
        for family in families() {
            let error = schema_error(family, &tool(&schema));
            assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{error}");
            assert_eq!((error.tool.as_deref(), &*error.path), (Some("f"), "#/properties/v"), "{error}");
        }
        let error = json_grammar(&schema, Layout::Any).expect_err("no text matches");
        assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{error}");
    }
}

#[test]
fn empty_alternative_is_omitted() {
    let compiler = Compiler::new();
    for (schema, text) in [
        (json!({"type": "string", "maxLength": 3, "anyOf": [{"minLength": 5}, {"pattern": "^a"}]}), "\"ab\""),
        (json!({"anyOf": [{"type": "string", "minLength": 5, "maxLength": 3}, {"type": "integer"}]}), "1"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 5, "maxLength": 3}}}),
            "{}",
        ),
    ] {
        let grammar = json_grammar(&schema, Layout::Exact).unwrap_or_else(|error| panic!("{error}"));
        let matcher = compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{schema}");
    }
}

/// A format of which a grammar writes a part only is left to validation where its pattern wants another part.
#[test]
fn unrepresentable_intersections_are_unenforced() {
    let compiler = Compiler::new();
    for (schema, keyword, text) in [
        (json!({"format": "hostname", "pattern": "\\.example\\.co\\.uk$"}), "format", "www.example.co.uk"),
        (json!({"format": "ipv6", "pattern": "^2001:db8::"}), "format", "2001:db8::1"),
        (json!({"format": "uri", "pattern": "%20"}), "format", "https://a.b/c%20d"),
        (json!({"format": "email", "pattern": "^[a-z]+\\.[a-z]+\\.[a-z]+@"}), "format", "a.b.c@d.e"),
    ] {
        let schema = json!({"type": "string", "format": schema["format"], "pattern": schema["pattern"], "maxLength": schema["maxLength"]});
        let schema: Value = schema
            .as_object()
            .expect("an object")
            .clone()
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect();
        let written = json_grammar(&schema, Layout::Exact).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<_> = written.unenforced.iter().map(|it| &*it.keyword).collect();
        assert_eq!(found, [keyword], "{schema}");
        let matcher = compiler.compile_grammar(&written.grammar).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verdict(&matcher, &json!(text).to_string()), Verdict::Accepted, "{schema}");
        for family in families() {
            let (name, tools) = (family.processor.name(), tool(&schema));
            let grammar = grammar(family, &tools).unwrap_or_else(|error| panic!("{name}: {error}"));
            compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{name}: {error}"));
            let found: Vec<_> = grammar.unenforced.iter().map(|it| (&*it.path, &*it.keyword)).collect();
            assert_eq!(found, [("#/properties/v", keyword)], "{name}");
        }
    }
}

#[test]
fn patterns_that_always_end_the_value_are_rejected() {
    for (format, pattern) in [
        ("qwen3_coder_xml", "</parameter>"),
        ("seed_oss_xml", "</parameter>"),
        ("hf_response_template_kv_lines", "^\\n.*\\n$"),
    ] {
        let family = families().find(|family| family.processor.name() == format).expect("a family");
        let error = schema_error(family, &tool(&json!({"type": "string", "pattern": pattern})));
        assert!(matches!(error.fault, SchemaFault::Unwritable { value: None, .. }), "{error}");
        assert_eq!(error.path, "#/properties/v", "{error}");
    }
}

#[test]
fn call_arguments_are_an_object() {
    let object = json!({"type": "object", "properties": {"v": {"type": "integer"}}, "required": ["v"]});
    let mut nullable = object.clone();
    nullable["type"] = json!(["object", "null"]);
    for schema in [
        json!({"anyOf": [{"type": "null"}, object]}),
        json!({"anyOf": [{"type": "string"}, object]}),
        json!({"oneOf": [{"type": "array"}, object, {"const": 5}]}),
        json!({"enum": [{"v": 1}, 2, {"v": 3}]}),
        nullable,
    ] {
        let valid = validator(&schema, true).expect("a schema");
        for family in families() {
            let tools = [ToolSpec::new("f", "", schema.clone())];
            let body = family.processor.dialect().expect("a dialect").calls[0].body;
            if matches!(body, CallBody::Parameters(_)) && schema.get("enum").is_some() {
                let error = schema_error(family, &tools);
                assert!(matches!(error.fault, SchemaFault::Unwritable { .. }), "{error}");
                continue;
            }
            let grammar = grammar(family, &tools).unwrap_or_else(|error| panic!("{error}"));
            let value = written(family, &tools, &grammar);
            assert!(value.is_number() && valid.is_valid(&json!({"v": value})), "{value}");
        }
    }
    for schema in [json!({"type": "array"}), json!({"type": "string"}), json!({"enum": [null, 1]})] {
        for family in families() {
            let error = schema_error(family, &[ToolSpec::new("f", "", schema.clone())]);
            assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{error}");
        }
    }
}

/// The end of a line ends a value there.
#[test]
fn multiples_have_no_leading_spaces() {
    let schema = json!({"type": "integer", "multipleOf": 7});
    for family in families() {
        let tools = tool(&schema);
        let grammar = grammar(family, &tools).unwrap_or_else(|error| panic!("{error}"));
        let value = written(family, &tools, &grammar);
        assert!(value.as_i64().is_some_and(|value| value % 7 == 0), "{}: {value}", family.processor.name());
        let dialect = family.processor.dialect().expect("a dialect");
        if dialect.name == "hf_response_template_kv_lines" {
            assert!(matches!(dialect.calls[0].body, CallBody::Parameters(_)));
            let matcher = Compiler::new().compile_grammar(&grammar.grammar).expect("a grammar");
            let text = |value: &str| format!("<tool_call>\n<function=f>\nv: {value}\n</tool_call>");
            let taken =
                ["14", "\n14", " 14"].map(|value| verdict(&matcher, &text(value)) == Verdict::Accepted);
            assert_eq!(taken, [true, false, false]);
        }
    }
}

/// The model's own blanks, within bounds.
#[test]
fn json_answer_may_have_blanks_at_brackets_and_commas() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}}},
        "required": ["name", "tags"], "additionalProperties": false,
    });
    let grammar = json_grammar(&schema, Layout::Exact).expect("a grammar");
    let matcher = Compiler::new().compile_grammar(&grammar.grammar).expect("it compiles");
    for text in [
        r#"{"name":"a","tags":[1,2]}"#,
        r#"{"name": "a", "tags": [1, 2]}"#,
        r#"{ "name": "a", "tags": [ 1, 2 ] }"#,
        "{\n  \"name\": \"a\",\n  \"tags\": [\n    1,\n    2\n  ]\n}",
        "{\n\t\"name\": \"a\",\n\t\"tags\": [1, 2]\n}",
        "{\n\"name\": \"a\",\n\"tags\": [1,\n2]}",
    ] {
        assert_eq!(verdict(&matcher, text), Verdict::Accepted, "{text}");
    }
    for text in [
        "{\n\n\"name\": \"a\", \"tags\": []}".to_owned(),
        "{  \"name\": \"a\", \"tags\": []}".to_owned(),
        format!("{{\n{}\"name\": \"a\", \"tags\": []}}", " ".repeat(21)),
        "{\"name\":\n\"a\", \"tags\": []}".to_owned(),
        " {\"name\": \"a\", \"tags\": []}".to_owned(),
    ] {
        assert!(matches!(verdict(&matcher, &text), Verdict::Rejected { .. }), "{text:?}");
    }
}
