//! Schemas of arguments against the types that read them: a value that the schema accepts is read, and the
//! other way round.

#![expect(dead_code, reason = "fields are read by `Debug`")]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::LazyLock;

use lm_tools::{CallContext, CallEvent, Map, Tool, ToolCall, ToolErrorKind, Toolset, Value, tool};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize, JsonSchema)]
struct Point {
    x: i64,
    y: Option<f64>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Closed {
    x: u8,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    /// Degrees.
    Celsius,
    Fahrenheit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { x: f64 },
    Dot,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i32),
    Text(String),
    Many(Vec<bool>),
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Tree {
    x: i8,
    tags: Vec<Tree>,
}

/// Tools with one argument of a type, whose schema restricts nothing beyond the type.
macro_rules! tools {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            /// Takes a value.
            #[tool]
            fn $name(value: $type) -> String {
                format!("{value:?}")
            }
        )*

        fn plain() -> Vec<Box<dyn Tool>> {
            vec![$(Box::new($name::tool())),*]
        }
    };
}

tools! {
    boolean: bool,
    byte: u8,
    short: i16,
    int: i32,
    long: i64,
    unsigned: u64,
    huge: i128,
    nonzero: NonZeroU8,
    float: f64,
    single: f32,
    character: char,
    text: String,
    cow: Cow<'static, str>,
    path: PathBuf,
    list: Vec<i64>,
    lists: Vec<Vec<u8>>,
    set: BTreeSet<u8>,
    pair: (i64, String),
    triple: [u8; 3],
    map: HashMap<String, i64>,
    numbered: BTreeMap<u8, bool>,
    optional: Option<i64>,
    optional_list: Option<Vec<Option<i64>>>,
    point: Point,
    closed: Closed,
    unit: Unit,
    shape: Shape,
    either: Either,
    tree: Tree,
    anything: Value,
}

/// Takes values with limits.
#[tool]
fn limited(
    #[arg(range(1..=14))] range: u8,
    #[arg(default = 0.5, range(0.0..1.0))] share: f64,
    #[arg(length(2..=3))] length: String,
    #[arg(pattern = "^a+$")] pattern: Option<String>,
    #[arg(choices(1, 3))] number: i64,
    #[arg(default = "a".to_owned(), choices("a", "x"))] choice: String,
    #[arg(length(..=2), items(range(0..10)))] items: Vec<i64>,
) -> String {
    format!("{range} {share} {length} {pattern:?} {number} {choice} {items:?}")
}

/// Takes values that are null if there are none.
#[tool(strict)]
fn strict(
    #[arg(range(1..=14))] range: Option<u8>,
    #[arg(default = 3)] number: i64,
    point: Option<Point>,
) -> String {
    format!("{range:?} {number} {point:?}")
}

/// Small numbers, which fit every type, and whole ones that are written as floats.
fn small() -> impl Strategy<Value = Value> {
    let whole = (-3..20_i64).prop_map(|number| json!(number as f64));
    prop_oneof![(-3..128_i64).prop_map(Value::from), whole, Just(json!(0.5)), Just(json!(-0.0))]
}

/// Numbers beyond the limits of types.
fn large() -> impl Strategy<Value = Value> {
    let integers = [128, 256, 1 << 15, 1 << 16, 1 << 31, 1 << 32, u64::MAX >> 1, u64::MAX].map(Value::from);
    let others =
        [i64::MIN.into(), json!(-(1_i64 << 31) - 1), json!(1e15), json!(1e17), json!(1e300), json!(-1e300)];
    prop::sample::select([&integers[..], &others].concat())
}

fn word() -> impl Strategy<Value = String> {
    let words =
        ["", "a", "aa", "é", "7", "300", "-1", "celsius", "Fahrenheit", "circle", "dot", "null", "true"];
    prop::sample::select(words.map(str::to_owned).to_vec())
}

fn value(number: BoxedStrategy<Value>, keys: &[&str]) -> impl Strategy<Value = Value> {
    let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
    let other =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), word().prop_map(Value::from)];
    prop_oneof![number, other].prop_recursive(3, 12, 4, move |value| {
        let members = prop::collection::vec((prop::sample::select(keys.clone()), value.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(value, 0..4).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const KEYS: [&str; 6] = ["x", "y", "tags", "kind", "a", "7"];
/// Keys of maps with numbers as keys: too large, and of a form that serde does not read.
const LARGE_KEYS: [&str; 4] = ["x", "7", "300", "007"];

/// Reads a value as the argument of a tool, with and without the schema.
fn check(tool: &dyn Tool, value: &Value) -> (Result<(), String>, Result<(), String>) {
    let arguments = Map::from_iter([("value".to_owned(), value.clone())]);
    let call = ToolCall::new(tool.spec().name(), arguments.clone());
    let by_schema = PLAIN.check(&call).map(drop).map_err(|error| error.to_string());
    let by_type = match tool.call(arguments, &CallContext::default()).wait() {
        Err(error) if error.kind() == ToolErrorKind::InvalidArguments => Err(error.to_string()),
        _ => Ok(()),
    };
    (by_schema, by_type)
}

/// Forms that serde reads and the schema does not have, so that no model sees them: a list of a struct's
/// fields, `null` for an argument that may be missing, a set with an item twice.
fn is_lenient(tool: &str, value: &Value) -> bool {
    match tool {
        "point" | "closed" | "tree" | "shape" => value.to_string().contains('['),
        "optional" | "optional_list" => value.is_null(),
        "set" => true,
        _ => false,
    }
}

/// The tools without limits, which take long to compile.
static PLAIN: LazyLock<Toolset> = LazyLock::new(|| Toolset::new().with(plain()).expect("names differ"));

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schema_accepts_all_readable_values(value in value(small().boxed(), &KEYS)) {
        for tool in plain() {
            let (by_schema, by_type) = check(&*tool, &value);
            let name = tool.spec().name().to_owned();
            let agree = by_schema.is_ok() == by_type.is_ok() || by_schema.is_err() && is_lenient(&name, &value);
            prop_assert!(agree, "{name}: {value}: schema {by_schema:?}, type {by_type:?}");
        }
    }

    /// Schemas have no limits of integers of 32 bits and more, as in Python, nor of numbers that are keys:
    /// such a number is an error of the argument.
    #[test]
    fn out_of_range_number_is_an_invalid_argument(value in value(prop_oneof![large(), small()].boxed(), &LARGE_KEYS)) {
        for tool in plain() {
            let (by_schema, by_type) = check(&*tool, &value);
            let Err(error) = by_type else { continue };
            prop_assert!(error.starts_with("argument `value`: "), "{error}");
            let is_large = |number: &str| number.trim_start_matches('-').len() > 2;
            let has_large = value.to_string().split(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).any(is_large);
            prop_assert!(by_schema.is_err() || has_large, "{}: {value}: {error}", tool.spec().name());
        }
    }

    #[test]
    fn limits_equal_the_options(chosen in prop::collection::vec(any::<prop::sample::Index>(), 7)) {
        let cases = limits();
        let tools = Toolset::new().with(limited::tool()).expect("one tool");
        let chosen: Vec<_> = cases.iter().zip(chosen).map(|((name, cases), index)| (*name, index.get(cases).clone())).collect();
        let arguments = chosen.iter().filter_map(|(name, (value, _))| Some(((*name).to_owned(), value.clone()?)));
        let call = ToolCall::new("limited", arguments.collect());
        let is_valid = chosen.iter().all(|(_, (_, is_valid))| *is_valid);
        prop_assert_eq!(tools.check(&call).is_ok(), is_valid, "{:?}", call);
        let result = tools.start(vec![call], &lm_tools::CancelHandle::new(), None).next_event();
        let Some(CallEvent::Finished(result)) = result else { panic!("one result") };
        prop_assert_eq!(result.error.is_none(), is_valid, "{:?}", result);
    }
}

/// Value of an argument, `None` for a missing one, and whether it is allowed.
type Case = (Option<Value>, bool);

/// Values of each argument of `limited`.
fn limits() -> [(&'static str, Vec<Case>); 7] {
    let of = |name, allowed: &[Value], others: &[Value], may_be_missing| {
        let given = |is_allowed| move |value: &Value| (Some(value.clone()), is_allowed);
        // Allowed ones twice, so that all of them are allowed often enough.
        let allowed = allowed.iter().chain(allowed).map(given(true));
        (name, allowed.chain(others.iter().map(given(false))).chain([(None, may_be_missing)]).collect())
    };
    [
        of(
            "range",
            &[json!(1), json!(14), json!(14.0)],
            &[json!(0), json!(15), json!(1.5), json!(null)],
            false,
        ),
        of("share", &[json!(0), json!(0.0), json!(0.999)], &[json!(1.0), json!(-0.1), json!("0")], true),
        of("length", &[json!("aa"), json!("ééé")], &[json!("a"), json!("aaaa"), json!(22)], false),
        of("pattern", &[json!("a"), json!("aa")], &[json!(""), json!("ab"), json!(null)], true),
        of("number", &[json!(1), json!(3), json!(3.0)], &[json!(2), json!("1")], false),
        of("choice", &[json!("a"), json!("x")], &[json!("b"), json!(""), json!(null)], true),
        of(
            "items",
            &[json!([]), json!([0, 9.0])],
            &[json!([0, 0, 0]), json!([10]), json!(["0"]), json!(0)],
            false,
        ),
    ]
}

#[test]
fn strict_tool_arguments_are_required_and_nullable() {
    let tools = Toolset::new().with(strict::tool()).expect("one tool");
    let call = |arguments: Value| {
        tools
            .call(&ToolCall::new("strict", arguments.as_object().cloned().expect("an object")))
            .content
            .text()
    };
    assert_eq!(call(json!({"range": null, "number": null, "point": null})), "None 3 None");
    let point = json!({"x": 1.0, "y": null, "tags": []});
    let expected = "Some(14) 5 Some(Point { x: 1, y: None, tags: [] })";
    assert_eq!(call(json!({"range": 14, "number": 5, "point": point})), expected);
    for wrong in [
        json!({"range": 15, "number": 5, "point": null}),
        json!({"number": 5, "point": null}),
        json!({"range": null, "number": null, "point": null, "more": 1}),
        json!({"range": null, "number": null, "point": {"x": 1, "y": null, "tags": [], "more": 1}}),
        json!({"range": null, "number": null, "point": {"x": 1, "y": null}}),
        json!({"range": null, "number": null, "point": {"x": 1, "y": null, "tags": null}}),
    ] {
        let call = ToolCall::new("strict", wrong.as_object().cloned().expect("an object"));
        assert!(tools.check(&call).is_err(), "{wrong}");
    }
}
