//! Listed values that contain texts of the syntax: written with an escape, or reported.

use lm_processors::{
    CallBody, Calls, Error, Family, GrammarRequest, ParserOptions, Recovery, ReplyGrammar, SchemaFault,
    Thinking, ToolChoice, ToolSpec, Value, ValueText,
};
use serde_json::json;

use crate::grammar::common::Compiler;
use crate::grammar::enforced::families;
use crate::grammar::random::Random;
use crate::grammar::walk::{Pieces, walk};

/// A required call of `f`, whose argument `v` has this schema.
pub fn tool(schema: &Value) -> [ToolSpec; 1] {
    let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    [ToolSpec::new("f", "", schema)]
}

pub fn grammar(family: &Family, tools: &[ToolSpec]) -> Result<ReplyGrammar, Error> {
    let request = GrammarRequest {
        tools,
        choice: ToolChoice::Required,
        calls: Calls::One,
        thinking: Thinking::Forbidden,
        ..GrammarRequest::default()
    };
    Ok(family.processor.grammar(&request)?.expect("a call is required"))
}

/// The first call of a random text of the grammar, as the parser reads it.
pub fn written(family: &Family, tools: &[ToolSpec], grammar: &ReplyGrammar) -> Value {
    let name = family.processor.name();
    let matcher = Compiler::new().compile_grammar(&grammar.grammar).expect("a grammar");
    let pieces = Pieces::of(family.processor.dialect().expect("a dialect"));
    let text =
        walk(&matcher, &pieces, &mut Random::seeded(1), 1_000).unwrap_or_else(|| panic!("{name}: no end"));
    let options =
        ParserOptions { tools: tools.to_vec().into(), recovery: Recovery::Off, ..ParserOptions::default() };
    let read = family.processor.to_message(&text, &options).expect("a call").tool_calls;
    let call = read.first().unwrap_or_else(|| panic!("{name}: no call in {text}"));
    call.arguments.get("v").unwrap_or_else(|| panic!("{name}: no argument in {text}")).clone()
}

/// Markers of a family that may end a value.
fn markers(family: &Family) -> Vec<&'static str> {
    let syntax = &family.processor.dialect().expect("a dialect").calls[0];
    let mut markers = vec![syntax.call.close, syntax.section.close, "<|end|>", "<|channel|>", "<|call|>"];
    match syntax.body {
        CallBody::Parameters(call) => markers.extend([call.value.close, call.key.open, call.end]),
        CallBody::Braces(call) => markers.push(call.quote),
        _ => {}
    }
    markers.retain(|marker| !marker.trim().is_empty());
    markers
}

#[test]
fn markers_in_texts_of_structures_are_escaped() {
    for family in families() {
        for marker in markers(family) {
            let value = json!([format!("a{marker}b"), {format!("{marker}\"'\\\n"): marker}]);
            let tools = tool(&json!({"const": value}));
            let grammar = grammar(family, &tools).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(grammar.unenforced, [], "{}", family.processor.name());
            assert_eq!(written(family, &tools, &grammar), value, "{}", family.processor.name());
        }
    }
}

#[test]
fn listed_texts_with_a_marker_are_escaped_or_reported() {
    for family in families() {
        let name = family.processor.name();
        for marker in markers(family) {
            let text = format!("a{marker}b");
            let tools = tool(&json!({"enum": [text]}));
            match grammar(family, &tools) {
                Ok(grammar) => {
                    assert_eq!(grammar.unenforced, [], "{name}");
                    assert_eq!(written(family, &tools, &grammar), json!(text), "{name}");
                    continue;
                }
                Err(Error::Schema(error)) => {
                    assert_eq!(
                        (error.tool.as_deref(), &*error.path),
                        (Some("f"), "#/properties/v"),
                        "{name}"
                    );
                    let SchemaFault::Unwritable { value, .. } = &error.fault else {
                        panic!("{name}: {error}")
                    };
                    assert_eq!(value.as_deref(), Some(&*json!(text).to_string()), "{name}");
                }
                Err(error) => panic!("{name}: {error}"),
            }
            // Only texts that are written verbatim have no escapes.
            let dialect = family.processor.dialect().expect("a dialect");
            assert!(matches!(dialect.calls[0].body, CallBody::Parameters(_)), "{name}: {marker}");
            let tools = tool(&json!({"enum": [text, "plain"]}));
            let grammar = grammar(family, &tools).expect("another text is left");
            let found: Vec<_> = grammar.unenforced.iter().map(|it| (&*it.path, &*it.keyword)).collect();
            assert_eq!(found, [("#/properties/v", "enum")], "{name}");
            assert_eq!(written(family, &tools, &grammar), json!("plain"), "{name}");
        }
    }
}

#[test]
fn inexpressible_texts_are_reported() {
    let minicpm = families().find(|family| family.processor.name() == "minicpm5_xml").expect("a family");
    for text in ["a]]></param>b", "<![CDATA[a]]>"] {
        let Err(Error::Schema(error)) = grammar(minicpm, &tool(&json!({"const": text}))) else {
            panic!("{text} can be written")
        };
        assert!(matches!(error.fault, SchemaFault::Unwritable { .. }), "{error}");
    }
    for text in ["a]]>b", "</param>", "<![CDATA[a"] {
        let tools = tool(&json!({"const": text}));
        let grammar = grammar(minicpm, &tools).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(written(minicpm, &tools, &grammar), json!(text));
    }
}

#[test]
fn empty_text_is_a_listed_value() {
    for family in families() {
        for schema in [json!({"const": ""}), json!({"type": ["string", "integer"], "enum": [""]})] {
            let tools = tool(&schema);
            let grammar = grammar(family, &tools).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(written(family, &tools, &grammar), json!(""), "{}", family.processor.name());
        }
    }
}

#[test]
fn unwritable_schema_without_list_is_reported() {
    let schema = json!({"type": "object", "minProperties": 1});
    let tools = [ToolSpec::new("f", "", schema)];
    let elements = |family: &&Family| {
        let body = family.processor.dialect().expect("a dialect").calls[0].body;
        matches!(body, CallBody::Parameters(call) if call.written == ValueText::Elements)
    };
    for family in families().filter(elements) {
        let Err(Error::Schema(error)) = grammar(family, &tools) else { panic!("a name is left open") };
        assert!(matches!(error.fault, SchemaFault::Unwritable { value: None, .. }), "{error}");
        assert!(error.to_string().contains(family.processor.name()), "{error}");
    }
    let never = json!({"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]});
    let tools = [ToolSpec::new("f", "", never)];
    for family in families() {
        let Err(Error::Schema(error)) = grammar(family, &tools) else { continue };
        assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{}: {error}", family.processor.name());
    }
}

#[test]
fn unwritable_value_has_its_schema_pointer() {
    let glm = families().find(|family| family.processor.name() == "glm4_xml").expect("a family");
    let texts = |values: Value| {
        let properties = json!({"v": {"$ref": "#/$defs/marker text"}});
        let definitions = json!({"marker text": {"enum": values}});
        let schema =
            json!({"type": "object", "properties": properties, "required": ["v"], "$defs": definitions});
        grammar(glm, &[ToolSpec::new("f", "", schema)])
    };
    let Err(Error::Schema(error)) = texts(json!(["</arg_value>"])) else { panic!("no value can be written") };
    assert_eq!(error.path, "#/properties/v", "{error}");
    let written = texts(json!(["</arg_value>", "x"])).expect("another text is left");
    assert_eq!(written.unenforced.len(), 1);
}
