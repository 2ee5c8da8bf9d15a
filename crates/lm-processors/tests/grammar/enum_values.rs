//! Listed values next to other keywords, combinations, and unbounded references.

use lm_processors::{
    Error, GrammarRequest, ReplyGrammar, ResponseFormat, SchemaError, Thinking, ToolChoice, ToolSpec, Value,
};
use serde_json::json;

use crate::grammar::common::{Compiler, Verdict, grammar_of, verdict};

fn answer(schema: &Value) -> Result<ReplyGrammar, Error> {
    let format = Some(ResponseFormat::JsonSchema(schema.clone()));
    grammar_of("hermes", &GrammarRequest { response_format: format, ..GrammarRequest::default() })
}

fn call(family: &str, schema: &Value) -> Result<ReplyGrammar, Error> {
    let tools = [ToolSpec::new("f", "", schema.clone())];
    let (choice, thinking) = (ToolChoice::Required, Thinking::Forbidden);
    grammar_of(family, &GrammarRequest { tools: &tools, choice, thinking, ..GrammarRequest::default() })
}

fn families() -> impl Iterator<Item = &'static str> {
    let processors = lm_processors::ALL.iter().map(|family| family.processor);
    let calls =
        processors.filter(|processor| processor.dialect().is_some_and(|dialect| !dialect.calls.is_empty()));
    calls.map(|processor| processor.name())
}

#[test]
fn listed_values_satisfy_the_whole_schema() {
    let compiler = Compiler::new();
    let cases = [
        (json!({"enum": ["a", "bb"], "minLength": 2}), r#""bb""#, r#""a""#),
        (json!({"enum": ["a", "bb"], "not": {"const": "a"}}), r#""bb""#, r#""a""#),
        (json!({"enum": [1, 5, "x"], "type": "integer", "exclusiveMinimum": 1}), "5", "1"),
        (json!({"allOf": [{"enum": ["a", "bb"]}, {"maxLength": 1}]}), r#""a""#, r#""bb""#),
        (
            json!({"$ref": "#/$defs/short", "enum": ["a", "bb"], "$defs": {"short": {"maxLength": 1}}}),
            r#""a""#,
            r#""bb""#,
        ),
        (json!({"allOf": [{"enum": [1, 2]}, {"enum": [2.0, 3]}]}), "2", "1"),
        (json!({"allOf": [{"const": "a"}, {"enum": ["a", "b"]}]}), r#""a""#, r#""b""#),
        (
            json!({"enum": ["2024-02-30", "2024-02-28"], "format": "date"}),
            r#""2024-02-28""#,
            r#""2024-02-30""#,
        ),
        (json!({"enum": [[1, 1], [1, 2]], "uniqueItems": true}), "[1, 2]", "[1, 1]"),
        (json!({"anyOf": [{"enum": ["a"], "minLength": 2}, {"type": "null"}]}), "null", r#""a""#),
    ];
    for (schema, right, wrong) in cases {
        let grammar = answer(&schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
        assert_eq!(grammar.unenforced, [], "{schema}");
        let matcher = compiler.compile_grammar(&grammar.grammar).expect("a grammar");
        assert_eq!(verdict(&matcher, right), Verdict::Accepted, "{right} for {schema}");
        assert_ne!(verdict(&matcher, wrong), Verdict::Accepted, "{wrong} for {schema}");
    }
}

#[test]
fn unsatisfiable_list_is_an_error_with_pointer() {
    for (listed, keyword) in [
        (json!({"enum": ["a", "b"], "minLength": 2}), "enum"),
        (json!({"const": 5, "type": "string"}), "const"),
        (json!({"enum": [1, 2], "minimum": 3}), "enum"),
    ] {
        let schema = json!({"type": "object", "properties": {"x": listed}, "required": ["x"]});
        let Err(Error::Schema(SchemaError { path, keyword: found, .. })) = answer(&schema) else {
            panic!("{schema} has a grammar")
        };
        assert_eq!((path.as_str(), found.as_str()), ("#/properties/x", keyword));
    }
}

#[test]
fn endless_references_are_errors_with_pointer() {
    let endless = [
        (json!({"$ref": "#"}), "#"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "#/$defs/b",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}, "required": ["next"]}}}),
            "#/$defs/a",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}}}),
            "#/$defs/a",
        ),
    ];
    for (schema, wanted) in endless {
        let Err(Error::Schema(SchemaError { path, .. })) = answer(&schema) else {
            panic!("{schema} has a grammar")
        };
        assert_eq!(path, wanted, "{schema}");
    }
    // An unbounded reference of an optional property is omitted.
    let optional = json!({
        "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "integer"}}, "required": ["b"], "additionalProperties": false,
        "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}, "required": ["next"]}},
    });
    let compiler = Compiler::new();
    let matcher =
        compiler.compile_grammar(&answer(&optional).expect("a grammar").grammar).expect("a grammar");
    assert_eq!(verdict(&matcher, r#"{"b": 1}"#), Verdict::Accepted);
    assert_ne!(verdict(&matcher, r#"{"a": {"next": {}}, "b": 1}"#), Verdict::Accepted);
}

/// Combinations that cannot be merged are left open, and reported.
#[test]
fn combinations_of_combinations_compile() {
    let compiler = Compiler::new();
    let part = |at: usize| json!({"anyOf": [{"pattern": format!("^a{at}")}, {"minLength": at}, {"type": "integer", "minimum": at}]});
    for parts in [2, 8] {
        let all: Vec<Value> = (1..=parts).map(part).collect();
        let schema = json!({"type": "object", "properties": {"v": {"allOf": all}}, "required": ["v"]});
        let grammar = answer(&schema).unwrap_or_else(|error| panic!("{error}"));
        assert!(!grammar.unenforced.is_empty());
        compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{error}"));
        for family in families() {
            let grammar = call(family, &schema).unwrap_or_else(|error| panic!("{family}: {error}"));
            compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{family}: {error}"));
        }
    }
}

/// References of a nested union are merged with the keywords beside it.
#[test]
fn nested_unions_keep_sibling_keywords() {
    let inner = json!({"oneOf": [{"$ref": "#/$defs/list"}, {"type": "integer"}]});
    let list = json!({"type": "array", "items": {"type": "null"}});
    let schema =
        json!({"type": ["integer", "null"], "anyOf": [inner, {"type": "null"}], "$defs": {"list": list}});
    let grammar = answer(&schema).expect("a grammar");
    let matcher = Compiler::new().compile_grammar(&grammar.grammar).expect("a grammar");
    for (text, expected) in [("null", true), ("7", true), ("[]", false), ("[null]", false)] {
        assert_eq!(verdict(&matcher, text) == Verdict::Accepted, expected, "{text}");
    }
}

/// Long lists are one terminal, and long counts cost nothing until used.
#[test]
fn large_lists_and_counts_compile_in_every_dialect() {
    let compiler = Compiler::new();
    let values: Vec<String> = (0..5_000).map(|at| format!("item {at:04}")).collect();
    let large = [
        json!({"enum": values}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "maxLength": 10_000}),
        json!({"type": "string", "minLength": 10_000}),
        json!({"type": "string", "minLength": 9_000, "maxLength": 10_000}),
    ];
    for schema in large {
        let schema = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
        for family in families() {
            let grammar = call(family, &schema).unwrap_or_else(|error| panic!("{family}: {error}"));
            assert_eq!(grammar.unenforced, [], "{family}");
            compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{family}: {error}"));
        }
    }
}

/// An alternative without values does not restrict the others.
#[test]
fn impossible_optional_property_is_omitted_in_every_dialect() {
    let compiler = Compiler::new();
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "boolean", "enum": ["true", "false"]}, "b": {"type": "integer"},
    }, "required": ["b"]});
    for family in families() {
        let grammar = call(family, &schema).unwrap_or_else(|error| panic!("{family}: {error}"));
        compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{family}: {error}"));
    }
    let grammar = answer(&schema).expect("the object may be without it");
    let matcher = compiler.compile_grammar(&grammar.grammar).expect("a grammar");
    assert_eq!(verdict(&matcher, r#"{"b": 1}"#), Verdict::Accepted);
    for wrong in [r#"{"a": "true", "b": 1}"#, r#"{"a": true, "b": 1}"#] {
        assert_ne!(verdict(&matcher, wrong), Verdict::Accepted, "{wrong}");
    }
}

#[test]
fn impossible_alternative_is_omitted_in_every_dialect() {
    let compiler = Compiler::new();
    let option = |name: &str, schema: Value| json!({"properties": {name: schema}, "required": [name]});
    let schema = json!({"type": "object", "anyOf": [
        option("a", json!({"type": "integer", "minimum": 5, "maximum": 4})), option("b", json!({"type": "integer"})),
    ]});
    for family in families() {
        let grammar = call(family, &schema).unwrap_or_else(|error| panic!("{family}: {error}"));
        compiler.compile_grammar(&grammar.grammar).unwrap_or_else(|error| panic!("{family}: {error}"));
    }
}
