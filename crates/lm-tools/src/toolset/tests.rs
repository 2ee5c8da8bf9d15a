use super::*;
use crate::{Tool, tool};
use lm_template::ToolCall;
use serde_json::json;

/// Multiply a and b.
#[tool]
fn multiply(
    /** first int */
    a: i64,
    /** second int */
    b: i64,
) -> Result<i64, String> {
    a.checked_mul(b).ok_or_else(|| "too large".to_owned())
}

/// Gives back what it gets.
#[tool]
fn echo(value: Value) -> Value {
    value
}

/// Fails in the worst way.
#[tool]
fn explode(message: Option<String>) -> String {
    match message {
        Some(message) => panic!("{message}"),
        None => std::panic::panic_any(7),
    }
}

fn tools() -> Toolset {
    let tools = Toolset::new().with(multiply::tool()).and_then(|tools| tools.with(echo::tool()));
    tools.and_then(|tools| tools.with(explode::tool())).expect("three tools of different names")
}

fn content(name: &str, arguments: Value) -> Value {
    let call = ToolCall::from_json(json!({"name": name, "arguments": arguments, "id": "call_7"}));
    let message = tools().call(&call.expect("a call")).to_json();
    assert_eq!((&message["role"], &message["tool_call_id"]), (&json!("tool"), &json!("call_7")));
    assert_eq!(message["name"], name);
    message["content"].clone()
}

fn error(name: &str, arguments: Value) -> String {
    let content = content(name, arguments);
    assert_eq!(content["tool_name"], name);
    content["error"].as_str().expect("an error").to_owned()
}

#[test]
fn results_become_text_or_json_objects() {
    assert_eq!(content("multiply", json!({"a": 3, "b": 5})), json!("15"));
    assert_eq!(content("echo", json!({"value": "as it is"})), json!("as it is"));
    assert_eq!(content("echo", json!({"value": {"z": 1, "a": [2]}})).to_string(), r#"{"z":1,"a":[2]}"#);
    assert_eq!(content("echo", json!({"value": [1, "b"]})), json!("[1,\"b\"]"));
    assert_eq!(content("echo", json!({"value": true})), json!("true"));
    assert_eq!(content("echo", json!({"value": null})), json!("null"));
}

#[test]
fn unknown_tool_message_is_exact() {
    let expected = r#"{"tool_name":"divide","error":"Tool not found"}"#;
    assert_eq!(content("divide", json!({})).to_string(), expected);
    assert_eq!(error("Multiply", json!({"a": 3, "b": 5})), "Tool not found", "names are not guessed");
}

#[test]
fn invalid_arguments_are_reported_before_the_tool_runs() {
    assert_eq!(error("multiply", json!({"a": 3})), "argument `b`: missing, expected integer");
    assert_eq!(
        error("multiply", json!({"a": 3, "b": "five"})),
        "argument `b`: expected integer, got \"five\""
    );
    let unknown = error("multiply", json!({"a": 3, "b": 5, "c": 7}));
    assert_eq!(unknown, "there is no argument `c`, the arguments are: a, b");
}

#[test]
fn errors_and_panics_of_a_tool_are_results() {
    assert_eq!(error("multiply", json!({"a": i64::MAX, "b": 2})), "too large");
    assert_eq!(error("explode", json!({"message": "boom"})), "the tool panicked: boom");
    assert_eq!(error("explode", json!({})), "the tool panicked: no message");
    assert_eq!(content("multiply", json!({"a": 1, "b": 1})), json!("1"), "the toolset still works");
}

#[test]
fn call_without_id_has_a_result_without_id() {
    let call =
        ToolCall::from_json(json!({"name": "multiply", "arguments": {"a": 1, "b": 2}})).expect("a call");
    assert_eq!(tools().call(&call).to_json(), json!({"role": "tool", "content": "2", "name": "multiply"}));
}

#[test]
fn duplicate_tool_name_is_rejected() {
    let error = tools().with(multiply::tool()).expect_err("a second `multiply`");
    assert_eq!(
        error.to_string(),
        "there are two tools named `multiply`: rename one, or give a toolset a prefix with `Toolset::with_prefix`"
    );
}

#[test]
fn declared_closure_is_a_tool() {
    let declaration = json!({"name": "half", "description": "Halve.", "parameters": {
        "type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}});
    let spec = ToolSpec::from_json(declaration.clone()).expect("a declaration");
    let half = |arguments: Map<String, Value>| match arguments["x"].as_f64() {
        Some(x) if x != 0.0 => Ok(json!(x / 2.0)),
        _ => Err(ToolError::failed("nothing to halve")),
    };
    let tools = Toolset::new().with_fn(spec, half).expect("a valid schema");
    assert_eq!(tools.specs()[0].to_json(), declaration, "the declaration stays as it was given");
    let result = |x: Value| {
        let call = ToolCall::from_json(json!({"name": "half", "arguments": {"x": x}})).expect("a call");
        tools.call(&call).content.text()
    };
    assert_eq!(result(json!(3)), "1.5");
    assert_eq!(result(json!(0)), r#"{"tool_name":"half","error":"nothing to halve"}"#);
    assert_eq!(
        result(json!("a")),
        r#"{"tool_name":"half","error":"argument `x`: expected number, got \"a\""}"#
    );
}

#[test]
fn tool_function_stays_callable() {
    assert_eq!(multiply(3, 5), Ok(15));
    let arguments = Map::from_iter([("a".to_owned(), json!(2)), ("b".to_owned(), json!(43))]);
    assert_eq!(multiply::tool().call(arguments, &CallContext::default()).wait(), Ok(json!(86)));
    assert_eq!(
        multiply::tool().call(Map::new(), &CallContext::default()).wait(),
        Err(ToolError::missing("a"))
    );
}
