//! Declarations of functions equal those that `get_json_schema` of transformers makes of the same functions
//! in Python (`testdata/tools/generate.py`), except for the differences in a table.
#![allow(unused_variables)]

use lm_tools::{Map, Tool, ToolSpec, Value, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Green,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum IntegerOrText {
    Integer(i64),
    Text(String),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Measurement {
    Number(f64),
    Flag(bool),
    Text(String),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(i64),
    Many(Vec<i64>),
}

/// Returns the time.
#[tool]
fn now() {}

/// Pings a host.
///
/// Args:
///     host: Name or address of the host.
#[tool]
fn ping(host: String) {}

/// Adds two integers.
///
/// Args:
///     a: The first one.
///     b: The second one.
#[tool]
fn add(a: i64, b: i64) {}

/// Scales a drawing.
///
/// Args:
///     factor: Above 1 enlarges it.
#[tool]
fn scale(factor: f64) {}

/// Switches the light.
///
/// Args:
///     on: True for on.
#[tool]
fn set_light(on: bool) {}

/// Adds a person.
///
/// Args:
///     name: Full name.
///     age: Age in years.
///     height: Height in metres.
///     member: Whether they are a member.
#[tool]
fn mixed(name: String, age: i64, height: f64, member: bool) {}

/// Converts a temperature.
///
/// Args:
///     value: The temperature.
///     unit: The target unit. (choices: ["celsius", "fahrenheit"])
#[tool]
fn convert(value: f64, unit: String) {}

/// Paints the wall.
///
/// Args:
///     color: The new color.
#[tool]
fn paint(color: Color) {}

/// Sets the level.
///
/// Args:
///     level: The new level.
#[tool]
fn set_level(#[arg(choices(1, 2))] level: i64) {}

/// Turns the robot.
///
/// Args:
///     direction: Seen from the robot.
#[tool]
fn turn(#[arg(choices("left", "right", "back"))] direction: String) {}

/// Rolls a die.
///
/// Args:
///     sides: Number of sides.
#[tool]
fn dice(#[arg(choices(4, 6, 8, 20))] sides: i64) {}

/// Zooms.
///
/// Args:
///     ratio: The ratio.
#[tool]
fn zoom(#[arg(choices(0.5, 1.0, 2.0))] ratio: f64) {}

/// Adds numbers.
///
/// Args:
///     numbers: The numbers.
#[tool]
fn sum_all(numbers: Vec<f64>) {}

/// Tags the photo.
///
/// Args:
///     names: The tags.
#[tool]
fn tag(names: Vec<String>) {}

/// Counts votes.
///
/// Args:
///     flags: One for each voter.
#[tool]
fn vote(flags: Vec<bool>) {}

/// Computes a determinant.
///
/// Args:
///     matrix: The rows.
#[tool]
fn determinant(matrix: Vec<Vec<f64>>) {}

/// Reads a cube of cells.
///
/// Args:
///     cells: Planes of rows of cells.
#[tool]
fn cube(cells: Vec<Vec<Vec<i64>>>) {}

/// Sets the palette.
///
/// Args:
///     palette: Colors in order.
#[tool]
fn colors(palette: Vec<Color>) {}

/// Follows a path.
///
/// Args:
///     path: The steps.
#[tool]
fn directions(#[arg(items(choices("n", "e", "s", "w")))] path: Vec<String>) {}

/// Stores prices.
///
/// Args:
///     table: Prices by name.
#[tool]
fn prices(table: HashMap<String, f64>) {}

/// Stores groups.
///
/// Args:
///     members: Names by group.
#[tool]
fn groups(members: HashMap<String, Vec<String>>) {}

/// Stores a nested table.
///
/// Args:
///     table: Counts by row and column.
#[tool]
fn nested(table: HashMap<String, HashMap<String, i64>>) {}

/// Stores settings.
///
/// Args:
///     values: Anything by name.
#[tool]
fn settings(values: Map<String, Value>) {}

/// Stores a value.
///
/// Args:
///     value: Anything.
#[tool]
fn store(value: Value) {}

/// Stores values.
///
/// Args:
///     values: Anything.
#[tool]
fn collect(values: Vec<Value>) {}

/// Shows a value.
///
/// Args:
///     value: A number or a text.
#[tool]
fn shown(value: IntegerOrText) {}

/// Stores a measurement.
///
/// Args:
///     value: A number, a flag, or a text.
#[tool]
fn measured(value: Measurement) {}

/// Deletes rows.
///
/// Args:
///     ids: One id, or a list of ids.
#[tool]
fn several(ids: OneOrMany) {}

/// Joins values.
///
/// Args:
///     values: Numbers and texts.
#[tool]
fn mixed_list(values: Vec<IntegerOrText>) {}

/// Greets somebody.
///
/// Args:
///     name: The person.
///     greeting: The first word.
#[tool]
fn greet(name: String, #[arg(default = "Hello")] greeting: String) {}

/// Reads a page.
///
/// Args:
///     offset: The first row.
///     limit: Number of rows.
#[tool]
fn page(#[arg(default = 0)] offset: i64, #[arg(default = 20)] limit: i64) {}

/// Searches the web.
///
/// Args:
///     query: The words.
///     site: Only on this site.
#[tool]
fn search(query: String, site: Option<String>) {}

/// Sets a reminder.
///
/// Args:
///     text: The text.
///     minutes: Minutes from now.
///     days: Days of the week.
#[tool]
fn remind(text: String, minutes: Option<i64>, days: Option<Vec<String>>) {}

/// Shows a point on the map.
///
/// Args:
///     point: Longitude and latitude.
#[tool]
fn locate(point: (f64, f64)) {}

/// Sets an interval.
///
/// Args:
///     bounds: A number and its unit.
#[tool]
fn interval(bounds: (i64, String)) {}

/// Describes a subject.
///
/// It begins with the most important fact.
/// It ends with a summary.
///
/// Args:
///     subject: The subject, which may be a person,
///         a place, or a thing.
#[tool]
fn describe(subject: String) {}

/// Quotes a text: "like this", with 'marks' and a backslash \.
///
/// Args:
///     text: The text: it may contain colons, "quotes" and {braces}.
#[tool]
fn quote(text: String) {}

/// Übersetzt einen Text — 翻訳 🌍.
///
/// Args:
///     text: Le texte à traduire, par exemple « bonjour ».
///     language: Die Sprache. (choices: ["deutsch", "français", "日本語"])
#[tool]
fn translate(text: String, language: String) {}

/// Books a hotel.
///
/// Args:
///     city: The city.
///     nights: Number of nights.
///     breakfast: With breakfast.
///     stars: The category.
///
/// Returns:
///     The number of the booking.
#[tool]
fn book(
    city: String,
    nights: i64,
    breakfast: Option<bool>,
    #[arg(choices("3", "4", "5"))] stars: Option<String>,
) {
}

/// Divides two numbers.
///
/// Args:
///     numerator: The dividend.
///     denominator: The divisor.
///
/// Returns:
///     The quotient.
///
/// Raises:
///     ZeroDivisionError: If the divisor is zero.
#[tool]
fn divide(numerator: f64, denominator: f64) {}

/// Sends a mail.
///
/// Args:
///     to: The recipients.
///     subject: The subject.
///     body: The text.
///     headers: Further headers by name.
///     urgent: Whether it is urgent.
#[tool]
fn send_mail(to: Vec<String>, subject: String, body: String, headers: HashMap<String, String>, urgent: bool) {
}

/// A declaration that differs on purpose.
struct Difference {
    function: &'static str,
    reason: &'static str,
    /// Makes transformers' declaration ours.
    rewrite: fn(&mut Value),
}

const NULLABLE: &str =
    "`nullable` is not a keyword of JSON Schema: an `Option` may be missing, and is not null";
const DEFAULT: &str = "transformers leaves defaults out";
const LENGTH: &str = "a tuple has all its items, and no others";

const DIFFERENCES: [Difference; 7] = [
    Difference {
        function: "greet",
        reason: DEFAULT,
        rewrite: |f| set(f, "greeting", "default", "Hello".into()),
    },
    Difference {
        function: "page",
        reason: DEFAULT,
        rewrite: |f| {
            set(f, "offset", "default", 0.into());
            set(f, "limit", "default", 20.into());
        },
    },
    Difference { function: "search", reason: NULLABLE, rewrite: |f| not_nullable(f, &["site"]) },
    Difference { function: "remind", reason: NULLABLE, rewrite: |f| not_nullable(f, &["minutes", "days"]) },
    Difference { function: "locate", reason: LENGTH, rewrite: |f| pair(f, "point") },
    Difference { function: "interval", reason: LENGTH, rewrite: |f| pair(f, "bounds") },
    Difference {
        function: "describe",
        reason: "lines of a paragraph are joined, as rustdoc does",
        rewrite: |f| {
            let text = f["description"].as_str().expect("a text").replace("fact.\nIt", "fact. It");
            f["description"] = text.into();
        },
    },
];

fn set(function: &mut Value, argument: &str, keyword: &str, value: Value) {
    function["parameters"]["properties"][argument][keyword] = value;
}

fn not_nullable(function: &mut Value, arguments: &[&str]) {
    for argument in arguments {
        let schema = function["parameters"]["properties"][argument].as_object_mut().expect("a schema");
        assert_eq!(schema.shift_remove("nullable"), Some(true.into()));
    }
}

fn pair(function: &mut Value, argument: &str) {
    set(function, argument, "minItems", 2.into());
    set(function, argument, "maxItems", 2.into());
}

fn ours() -> Vec<ToolSpec> {
    vec![
        now::tool().spec(),
        ping::tool().spec(),
        add::tool().spec(),
        scale::tool().spec(),
        set_light::tool().spec(),
        mixed::tool().spec(),
        convert::tool().spec(),
        paint::tool().spec(),
        set_level::tool().spec(),
        turn::tool().spec(),
        dice::tool().spec(),
        zoom::tool().spec(),
        sum_all::tool().spec(),
        tag::tool().spec(),
        vote::tool().spec(),
        determinant::tool().spec(),
        cube::tool().spec(),
        colors::tool().spec(),
        directions::tool().spec(),
        prices::tool().spec(),
        groups::tool().spec(),
        nested::tool().spec(),
        settings::tool().spec(),
        store::tool().spec(),
        collect::tool().spec(),
        shown::tool().spec(),
        measured::tool().spec(),
        several::tool().spec(),
        mixed_list::tool().spec(),
        greet::tool().spec(),
        page::tool().spec(),
        search::tool().spec(),
        remind::tool().spec(),
        locate::tool().spec(),
        interval::tool().spec(),
        describe::tool().spec(),
        quote::tool().spec(),
        translate::tool().spec(),
        book::tool().spec(),
        divide::tool().spec(),
        send_mail::tool().spec(),
    ]
}

fn theirs() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../testdata/tools/get_json_schema.json")).expect("declarations")
}

#[test]
fn function_declarations_equal_transformers() {
    let (ours, theirs) = (ours(), theirs());
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        if !DIFFERENCES.iter().any(|difference| difference.function == ours.name()) {
            assert_eq!(ours.to_json().to_string(), theirs.to_string());
        }
    }
}

#[test]
fn other_declarations_differ_as_tabulated() {
    let theirs = theirs();
    for Difference { function, reason, rewrite } in DIFFERENCES {
        let find = |declaration: &&Value| declaration["function"]["name"] == function;
        let mut expected = theirs.iter().find(find).expect(function).clone();
        let ours = ours().into_iter().find(|spec| spec.name() == function).expect(function).to_json();
        assert_ne!(ours, expected, "{function} is equal: remove it from the table");
        rewrite(&mut expected["function"]);
        assert_eq!(ours, expected, "{function}: {reason}");
    }
}

/// Measures the temperature.
///
/// Args:
///     place: The place.
///
/// Returns:
///     The temperature,
///     in degrees.
#[tool]
fn measure(place: String) -> f64 {
    20.0
}

/// A result without a schema.
#[derive(Serialize)]
struct Opaque;

/// Opens a box.
///
/// # Returns
/// The content.
#[tool]
fn open_box() -> Result<Opaque, String> {
    Ok(Opaque)
}

/// Lists colors.
///
/// Returns:
///     The colors.
#[tool(strict)]
fn list_colors() -> Result<Vec<Color>, String> {
    Ok(vec![Color::Red, Color::Green])
}

#[test]
fn described_results_are_declared_under_return() {
    let text = |spec: ToolSpec| spec.to_json()["function"].to_string();
    // As `get_json_schema` writes it, key for key.
    let measured = concat!(
        r#"{"name":"measure","description":"Measures the temperature.","parameters":{"type":"object","#,
        r#""properties":{"place":{"type":"string","description":"The place."}},"required":["place"]},"#,
        r#""return":{"type":"number","description":"The temperature, in degrees."}}"#
    );
    assert_eq!(text(measure::tool().spec()), measured);
    let returned = |spec: ToolSpec| spec.to_json()["function"]["return"].to_string();
    assert_eq!(returned(open_box::tool().spec()), r#"{"description":"The content."}"#);
    assert_eq!(
        returned(list_colors::tool().spec()),
        r#"{"type":"array","items":{"type":"string","enum":["red","green"]},"description":"The colors."}"#
    );
    assert_eq!(returned(divide::tool().spec()), "null", "without a return type there is no result");
}
