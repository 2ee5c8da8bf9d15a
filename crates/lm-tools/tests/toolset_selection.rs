//! Toolsets made of other toolsets: prefixes, selections, external tools, conversion of arguments, forms of
//! declarations.

use lm_tools::{
    CallContext, Coercion, Error, State, Tool, ToolCall, ToolForm, ToolOutput, ToolSpec, Toolset, Value,
    tool, toolset,
};
use serde_json::json;

/// Returns the name under which it was called.
#[tool(read_only)]
fn get(context: &CallContext, city: Option<String>) -> String {
    format!("{} {}", context.name(), city.unwrap_or_default())
}

/// Returns the number of the set.
#[tool]
fn number(number: State<u8>) -> u8 {
    *number
}

/// Takes several kinds of values.
#[tool]
fn take(count: i64, flag: Option<bool>, names: Option<Vec<String>>) -> String {
    format!("{count} {flag:?} {names:?}")
}

fn call(tools: &Toolset, name: &str, arguments: Value) -> String {
    let call = ToolCall::from_json(json!({"name": name, "arguments": arguments})).expect("a call");
    tools.call(&call).content.text()
}

#[test]
fn prefix_renames_declaration_and_call() {
    let tools = toolset![get].and_then(|tools| tools.with_prefix("weather")).expect("a short name");
    assert_eq!(tools.specs()[0].to_json()["function"]["name"], "weather_get");
    assert_eq!(call(&tools, "weather_get", json!({"city": "Paris"})), "weather_get Paris");
    assert!(call(&tools, "get", json!({})).contains("Tool not found"));
    assert!(tools.annotations("weather_get").is_some_and(|hints| hints.is_read_only()));
}

#[test]
fn prefix_producing_an_invalid_name_is_an_error() {
    for prefix in ["weather.eu", "wetter für", &"p".repeat(61)] {
        let error = toolset![get].and_then(|tools| tools.with_prefix(prefix)).expect_err(prefix);
        assert!(matches!(&error, Error::InvalidName { name } if *name == format!("{prefix}_get")), "{error}");
        assert!(error.to_string().contains("1 to 64 ASCII letters"), "{error}");
    }
    assert!(toolset![get].and_then(|tools| tools.with_prefix(&"p".repeat(60))).is_ok());
}

#[test]
fn conflicting_names_are_reported_and_resolved_by_prefix() {
    let error = toolset![get, toolset![get].expect("one tool")].expect_err("two of a name");
    assert_eq!(
        error.to_string(),
        "there are two tools named `get`: rename one, or give a toolset a prefix with `Toolset::with_prefix`"
    );
    let other = toolset![get].and_then(|tools| tools.with_prefix("other")).expect("a short name");
    let both = toolset![get, &other].expect("two names");
    assert_eq!(both.names().collect::<Vec<_>>(), ["get", "other_get"]);
}

#[test]
fn merged_tools_keep_their_state() {
    let set = |value: u8| Toolset::new().with_state(value).with(number::tool()).expect("one tool");
    let second = set(2).with_prefix("second").expect("a short name");
    let both = set(1).with(second).expect("two names");
    assert_eq!(call(&both, "number", json!({})), "1");
    assert_eq!(call(&both, "second_number", json!({})), "2");
}

#[test]
fn selection_keeps_order_and_rejects_unknown_names() {
    let tools = toolset![get, take, lm_tools::demo()].expect("six names");
    let selected = tools.select(["current_time", "get"]).expect("known names");
    assert_eq!(selected.names().collect::<Vec<_>>(), ["get", "current_time"]);
    let others = tools.without(["get", "take"]).expect("known names");
    assert_eq!(others.len(), 4);
    assert!(call(&others, "get", json!({})).contains("Tool not found"));
    let error = others.select(["get"]).expect_err("it was not selected");
    assert_eq!(
        error.to_string(),
        "there is no tool named `get`, the tools are: get_weather, get_stock_price, current_time, calculate"
    );
    assert!(tools.without(["Get"]).is_err());
    assert!(tools.select([]).expect("nothing").is_empty());
}

#[test]
fn external_tool_calls_are_checked_and_not_run() {
    let spec = json!({"name": "open", "description": "Opens a file.", "input_schema": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}});
    let spec = ToolSpec::from_json(spec).expect("a declaration");
    let tools = toolset![get].and_then(|tools| tools.with_external(spec)).expect("two tools");
    assert!(tools.is_external("open") && !tools.is_external("get") && !tools.is_external("close"));
    let open =
        |arguments| ToolCall::from_json(json!({"name": "open", "arguments": arguments})).expect("a call");
    assert!(tools.check(&open(json!({"path": "a"}))).expect("a valid call").is_external);
    let error = tools.check(&open(json!({}))).expect_err("no path");
    assert_eq!(error.to_string(), "argument `path`: missing, expected string");
    assert!(tools.call(&open(json!({"path": "a"}))).content.text().contains("run by the caller"));
    let prefixed = tools.with_prefix("editor").expect("short names");
    assert!(prefixed.is_external("editor_open"));
}

#[test]
fn arguments_are_converted_on_request_if_valid() {
    let given = json!({"count": "3", "flag": "True", "names": "Emma"});
    let strict = toolset![take].expect("one tool");
    let error = call(&strict, "take", given.clone());
    assert!(error.contains("argument `count`: expected integer, got"), "{error}");

    let lenient = strict.with_coercion(Coercion::On);
    assert_eq!(call(&lenient, "take", given.clone()), r#"3 Some(true) Some(["Emma"])"#);
    let checked = lenient.check(&ToolCall::new("take", given.as_object().expect("an object").clone()));
    let checked = checked.expect("a valid call");
    let coerced: Vec<String> = checked.coerced.iter().map(ToString::to_string).collect();
    assert_eq!(coerced, [r#"/count: "3" to 3"#, r#"/flag: "True" to true"#, r#"/names: "Emma" to ["Emma"]"#]);
    assert_eq!(Value::Object(checked.arguments), json!({"count": 3, "flag": true, "names": ["Emma"]}));
    assert_eq!(call(&lenient, "take", json!({"count": 1, "flag": null, "names": null})), "1 None None");

    let error = call(&lenient, "take", json!({"count": "3", "flag": "perhaps"}));
    assert!(
        error.contains(r#"`count`: expected integer, got \"3\""#),
        "the errors are those of the call: {error}"
    );
}

#[test]
fn declarations_of_every_form_round_trip() {
    let tools = toolset![get, take].expect("two tools");
    for form in [ToolForm::OpenAi, ToolForm::Bare, ToolForm::Anthropic, ToolForm::Mcp, ToolForm::Gemini] {
        let written = tools.declarations(form);
        assert_eq!(written.dropped, [""; 0]);
        let specs = ToolSpec::list_from_json(written.json).expect("declarations");
        for (read, spec) in specs.iter().zip(tools.specs()) {
            assert_eq!(read.to_function_json(), spec.to_function_json(), "{form:?}");
        }
        assert_eq!(specs.len(), 2);
    }
    let mcp = tools.declarations(ToolForm::Mcp).json;
    assert_eq!(mcp[0]["inputSchema"]["properties"]["city"]["type"], "string");
}

#[test]
fn boxed_tool_is_a_tool() {
    let tools: Vec<Box<dyn Tool>> = vec![Box::new(get::tool()), Box::new(take::tool())];
    let set = Toolset::new().with(tools).expect("two tools");
    assert_eq!(set.names().collect::<Vec<_>>(), ["get", "take"]);
    let ToolOutput::Ready(result) = get::tool().call(serde_json::Map::new(), &CallContext::default()) else {
        panic!("a blocking tool");
    };
    assert_eq!(result, Ok(json!(" ")));
}
