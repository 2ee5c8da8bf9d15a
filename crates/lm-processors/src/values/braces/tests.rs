use serde_json::{Value, json};

use super::super::incremental::whole_and_by_character;
use super::*;
use crate::values::SchemaCache;

/// Parses the arguments in a text.
fn read(text: &str) -> Result<Value, String> {
    let schema = json!({"properties": {
        "place": {"type": "string"}, "n": {"type": "integer"}, "tags": {"items": {"type": "string"}},
        "either": {"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}}]},
        "pair": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}
    }});
    let follow = |arguments: &mut BraceArguments, text: &str| {
        arguments.follow(text, Some(Schema::new(&schema, &SchemaCache::default())))
    };
    let read =
        whole_and_by_character(text, || BraceArguments::new("<|\"|>", ""), follow, BraceArguments::certain);
    read.map(|json| serde_json::from_str(&json).unwrap())
}

#[test]
fn arguments_become_json() {
    let cases = [
        ("{}", json!({})),
        (r#"{place:<|"|>Zürich "HB", {1}<|"|>,n:-7}"#, json!({"place": "Zürich \"HB\", {1}", "n": -7})),
        (r#"{ o : { k : true , l : [ 1 , [ ] , null ] } }"#, json!({"o": {"k": true, "l": [1, [], null]}})),
        (r#"{<|"|>a:b<|"|>:1,"c\"d":"e\n\"f"}"#, json!({"a:b": 1, "c\"d": "e\n\"f"})),
        (r#"{x:1.5e10,y:<|"|><|"|>}"#, json!({"x": 1.5e10, "y": ""})),
        ("{place:42,n:42,m:42,free:red tea}", json!({"place": "42", "n": 42, "m": 42, "free": "red tea"})),
        (r#"{n:<|"|>4<|"|>,place:<|"|>4<|"|>}"#, json!({"n": 4, "place": "4"})),
        ("{either:[1,two],pair:[1,two]}", json!({"either": [1, "two"], "pair": [1, "two"]})),
        ("{tags:[1,two],rest:[1,two]}", json!({"tags": ["1", "two"], "rest": [1, "two"]})),
        (r#"{url:<|"|>a<|b<|"|>,}"#, json!({"url": "a<|b"})),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let long = format!("{{{}", "k".repeat(2000));
    let deep = format!("{{a:{}", "[".repeat(200));
    for text in [
        "",
        "[",
        "{",
        "{a",
        "{a}",
        "{a:}",
        "{a:,}",
        "{:1}",
        "{a:1]",
        "{a:[1}",
        "{a:1 {",
        "{a:\"\\q\"}",
        "{}}",
        &long,
        &deep,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}
