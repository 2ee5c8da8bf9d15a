//! Methods as tools, options of tools and of their arguments.

use crate::common;
use lm_template::Preface;
use lm_tools::{State, Tool, ToolCall, ToolChoice, Toolset, TurnOptions, Value, tool, tools, toolset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Notes by name.
struct Notes {
    names: Vec<String>,
    calls: AtomicUsize,
}

type Key = String;

#[tools]
impl Notes {
    const PAGE: usize = 2;

    fn new(names: &[&str]) -> Self {
        Self { names: names.iter().map(|&name| name.to_owned()).collect(), calls: AtomicUsize::new(0) }
    }

    /// Lists notes.
    #[tool(read_only, open_world = false, title = "Notes")]
    fn list(
        &self,
        /** the first one */
        #[arg(default = 0)]
        offset: usize,
        #[arg(default = Self::PAGE)] limit: usize,
    ) -> Vec<String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.names.iter().skip(offset).take(limit).cloned().collect()
    }

    /// Finds a note.
    #[tool(name = "find_note", timeout = "5s")]
    async fn find(&self, factor: State<usize>, key: Key) -> Result<usize, String> {
        let index = self.names.iter().position(|name| *name == key);
        index.map(|index| index * *factor).ok_or_else(|| format!("no note `{key}`"))
    }

    /// Returns the largest page.
    #[tool]
    fn page() -> usize {
        Self::PAGE
    }

    #[cfg(any())]
    /// Never built.
    #[tool]
    fn never(&self, nothing: Nothing) {}
}

fn call(tools: &Toolset, name: &str, arguments: Value) -> String {
    let call = ToolCall::from_json(json!({"name": name, "arguments": arguments})).expect("a call");
    tools.call(&call).content.text()
}

#[test]
fn methods_are_tools_of_one_value_and_stay_methods() {
    let notes = Arc::new(Notes::new(&["a", "b", "c"]));
    let tools = Toolset::new().with_state(10_usize).with(notes.tools()).expect("three tools");
    assert_eq!(tools.names().collect::<Vec<_>>(), ["list", "find_note", "page"]);
    assert_eq!(call(&tools, "list", json!({})), r#"["a","b"]"#);
    assert_eq!(call(&tools, "list", json!({"offset": 1, "limit": 5})), r#"["b","c"]"#);
    assert_eq!(notes.list(2, 1), ["c"]);
    assert_eq!(notes.calls.load(Ordering::Relaxed), 3, "tools and methods share the value");
    assert_eq!(call(&tools, "find_note", json!({"key": "c"})), "20");
    assert!(call(&tools, "find_note", json!({"key": "d"})).contains("no note `d`"));
    assert_eq!(call(&tools, "page", json!({})), "2");
}

#[test]
fn method_without_its_state_is_rejected() {
    let error = Toolset::new().with(Arc::new(Notes::new(&[])).tools()).expect_err("no state");
    assert!(error.to_string().contains("tool `find_note` needs a state of the type `usize`"), "{error}");
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// Plans.
#[tool]
fn plan(
    #[arg(range(1..=14), default = 3)] days: u8,
    #[arg(default = Unit::Kelvin)] unit: Unit,
    #[arg(length(1..=8), pattern = "^[a-z]+$", example = "paris", rename = "place", description = "The city.")]
    city: String,
    #[arg(items(range(0..10)), length(..3), default)] hours: Vec<i64>,
    #[arg(choices("walk", "ride"))] way: Option<String>,
    #[arg(range(0.5..))] scale: Option<f64>,
    #[arg(default = "now")] when: String,
) -> String {
    format!("{days} {unit:?} {city} {hours:?} {way:?} {scale:?} {when}")
}

#[test]
fn options_of_arguments_are_in_the_schema() {
    let expected = json!({
        "type": "object",
        "properties": {
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "kelvin"},
            "place": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-z]+$", "examples": ["paris"],
                "description": "The city."},
            "hours": {"type": "array", "items": {"type": "integer", "minimum": 0, "exclusiveMaximum": 10},
                "maxItems": 2, "default": []},
            "way": {"type": "string", "enum": ["walk", "ride"]},
            "scale": {"type": "number", "minimum": 0.5},
            "when": {"type": "string", "default": "now"},
        },
        "required": ["place"],
    });
    let spec = plan::tool().spec();
    assert_eq!(spec.parameters(), &expected);
}

#[test]
fn model_calls_satisfy_options_by_grammar_alone() {
    let tools = toolset![plan].expect("one tool");
    let preface = Preface { tools: tools.specs(), ..Preface::default() };
    let mut conversation = common::conversation(preface);
    let options = TurnOptions { tool_choice: ToolChoice::Named("plan".to_owned()), ..TurnOptions::default() };
    let reply = conversation.send_with("Plan 99 days in Oslo, NORWAY", options).expect("a call");
    assert_eq!(reply.unenforced, []);
    let checked = tools.check(reply.message.tool_calls.first().expect("the named tool"));
    assert!(checked.is_ok(), "{checked:?}");
}

#[test]
fn missing_argument_gets_the_schema_default() {
    let tools = toolset![plan].expect("one tool");
    assert_eq!(call(&tools, "plan", json!({"place": "oslo"})), "3 Kelvin oslo [] None None now");
    let given = json!({"place": "oslo", "days": 14, "unit": "celsius", "hours": [9], "way": "walk", "scale": 2, "when": "x"});
    assert_eq!(call(&tools, "plan", given), r#"14 Celsius oslo [9] Some("walk") Some(2.0) x"#);
}

#[test]
fn out_of_range_values_name_the_argument() {
    let tools = toolset![plan].expect("one tool");
    for (name, value) in [
        ("days", json!(15)),
        ("days", json!(0)),
        ("unit", json!("rankine")),
        ("place", json!("Oslo")),
        ("place", json!("")),
        ("place", json!("trondheim")),
        ("hours", json!([1, 2, 3])),
        ("hours", json!([10])),
        ("way", json!("swim")),
        ("scale", json!(0.4)),
    ] {
        let mut arguments = json!({"place": "oslo"});
        arguments[name] = value;
        let text = call(&tools, "plan", arguments);
        assert!(text.contains(&format!("argument `{name}")), "{name}: {text}");
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Point {
    x: f64,
    label: Option<String>,
}

/// Moves.
#[tool(strict, destructive = false, idempotent, output_schema)]
fn move_to(
    point: Point,
    speed: Option<u8>,
    #[arg(default = 1)] times: u8,
    #[arg(choices("walk", "ride"))] way: Option<String>,
) -> Result<Point, String> {
    let _ = (speed, times, way);
    Ok(point)
}

#[test]
fn strict_tool_requires_all_arguments_and_nullable_optionals() {
    let spec = move_to::tool().spec();
    let function = spec.to_function_json()["function"].clone();
    assert_eq!(function["strict"], true);
    let expected = json!({
        "type": "object",
        "properties": {
            "point": {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": ["string", "null"]}},
                "required": ["x", "label"], "additionalProperties": false},
            "speed": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
            "times": {"type": ["integer", "null"], "minimum": 0, "maximum": 255, "default": 1},
            "way": {"type": ["string", "null"], "enum": ["walk", "ride", null]},
        },
        "required": ["point", "speed", "times", "way"],
        "additionalProperties": false,
    });
    assert_eq!(function["parameters"], expected);
    let tools = toolset![move_to].expect("one tool");
    let mut arguments =
        json!({"point": {"x": 1.0, "label": null}, "speed": null, "times": null, "way": null});
    assert_eq!(call(&tools, "move_to", arguments.clone()), r#"{"x":1.0,"label":null}"#);
    arguments.as_object_mut().expect("an object").remove("times");
    assert!(call(&tools, "move_to", arguments).contains("`times`: missing"));
}

#[test]
fn hints_and_result_schema_reach_the_toolset() {
    let tools = toolset![move_to].expect("one tool");
    let hints = tools.annotations("move_to").expect("the tool");
    assert_eq!((hints.destructive, hints.idempotent, hints.read_only), (Some(false), Some(true), None));
    let schema = tools.output_schema("move_to").expect("a described result");
    assert_eq!(schema["properties"]["x"], json!({"type": "number"}));
    let notes = toolset![Arc::new(Notes::new(&[])).tools().swap_remove(0)].expect("one tool");
    let hints = notes.annotations("list").expect("the tool");
    assert_eq!(
        (hints.title.as_deref(), hints.read_only, hints.open_world),
        (Some("Notes"), Some(true), Some(false))
    );
}

/// Writes a row, alone.
#[tool(sequential, retries = 4, timeout = "2m")]
fn write_row(row: String) -> usize {
    row.len()
}

/// Reports that it is alive.
#[tool(sequential = false, timeout = "1m")]
fn heartbeat() {}

#[test]
fn tool_limits_equal_its_options() {
    let tool = write_row::tool();
    assert!(tool.is_sequential());
    assert_eq!(tool.retries().map(|policy| policy.max_retries), Some(4));
    assert_eq!(tool.timeout(), Some(Duration::from_secs(120)));
    let minute = heartbeat::tool();
    assert_eq!((minute.is_sequential(), minute.timeout()), (false, Some(Duration::from_secs(60))));
    let plain = plan::tool();
    assert_eq!((plain.is_sequential(), plain.retries(), plain.timeout()), (false, None, None));
}
