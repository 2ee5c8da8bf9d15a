use super::*;
use serde::Deserialize;
use serde_json::json;

fn property<T: ArgumentType>(description: &'static str, choices: &[&str]) -> String {
    let argument = Argument::<T>::new("x", description);
    let argument = if choices.is_empty() { argument } else { argument.texts(choices) };
    let spec = Declaration::new("f", "F.").argument(argument).spec();
    spec.parameters()["properties"]["x"].to_string()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
enum Direction {
    /// Up on a map.
    North,
    /// Down on a map.
    South,
}

/// A point.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Point {
    /// Degrees east.
    longitude: f64,
    /// A word that is also a schema keyword.
    title: Option<String>,
    format: u8,
    unit: Unit,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Tree {
    children: Vec<Tree>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
enum Shape {
    Circle { radius: f64 },
    Square(f64),
}

#[test]
fn numbers_lose_width_and_keep_range() {
    assert_eq!(property::<f64>("A.", &[]), r#"{"type":"number","description":"A."}"#);
    assert_eq!(property::<i64>("", &[]), r#"{"type":"integer"}"#);
    assert_eq!(property::<u32>("", &[]), r#"{"type":"integer","minimum":0}"#);
    assert_eq!(property::<u8>("", &[]), r#"{"type":"integer","minimum":0,"maximum":255}"#);
}

#[test]
fn strings_booleans_and_lists_are_plain() {
    assert_eq!(property::<String>("A.", &[]), r#"{"type":"string","description":"A."}"#);
    assert_eq!(property::<bool>("", &[]), r#"{"type":"boolean"}"#);
    assert_eq!(
        property::<Vec<i32>>("A.", &[]),
        r#"{"type":"array","items":{"type":"integer"},"description":"A."}"#
    );
    assert_eq!(property::<Value>("Any.", &[]), r#"{"description":"Any."}"#);
}

#[test]
fn choices_follow_type_and_precede_description() {
    let expected = r#"{"type":"string","enum":["celsius","fahrenheit"],"description":"A."}"#;
    assert_eq!(property::<String>("A.", &["celsius", "fahrenheit"]), expected);
    assert_eq!(property::<Unit>("A.", &[]), expected);
    assert_eq!(property::<Direction>("", &[]), r#"{"type":"string","enum":["North","South"]}"#);
}

#[test]
fn structs_are_inlined_and_their_field_names_are_kept() {
    let expected = concat!(
        r#"{"type":"object","properties":{"longitude":{"type":"number","description":"Degrees east."},"#,
        r#""title":{"type":["string","null"],"description":"A word that is also a schema keyword."},"#,
        r#""format":{"type":"integer","minimum":0,"maximum":255},"#,
        r#""unit":{"type":"string","enum":["celsius","fahrenheit"]}},"#,
        r#""required":["longitude","format","unit"],"description":"Where."}"#,
    );
    assert_eq!(property::<Point>("Where.", &[]), expected);
    assert!(
        property::<Point>("", &[]).ends_with(r#""description":"A point."}"#),
        "the type's own docs are used"
    );
}

#[test]
fn enum_with_data_is_a_choice_of_objects() {
    let schema = property::<Shape>("", &[]);
    assert!(schema.contains(r#""oneOf":[{"type":"object","properties":{"Circle""#), "{schema}");
}

#[test]
fn recursive_type_refers_to_the_parameter_root() {
    let spec = Declaration::new("f", "F.").argument(Argument::<Tree>::new("x", "")).spec();
    let tree = json!({"type": "object", "properties": {
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}, "required": ["children"]});
    assert_eq!(spec.parameters()["$defs"]["Tree"], tree);
    let validator = jsonschema::validator_for(spec.parameters()).expect("a valid schema");
    assert!(validator.is_valid(&json!({"x": {"children": [{"children": []}]}})));
    assert!(!validator.is_valid(&json!({"x": {"children": [{"children": 1}]}})));
}

#[test]
fn function_without_arguments_requires_nothing() {
    let spec =
        Declaration::new("now", "Now.").argument(Argument::<String>::new("zone", "").optional()).spec();
    assert_eq!(spec.parameters().to_string(), r#"{"type":"object","properties":{"zone":{"type":"string"}}}"#);
    assert_eq!(
        Declaration::new("now", "Now.").spec().parameters().to_string(),
        r#"{"type":"object","properties":{}}"#
    );
}
