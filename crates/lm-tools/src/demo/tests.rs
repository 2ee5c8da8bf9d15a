use super::*;
use lm_template::ToolCall;
use serde_json::{Value, json};

fn call(name: &str, arguments: Value) -> String {
    let call = ToolCall::from_json(json!({"name": name, "arguments": arguments})).expect("a call");
    demo().call(&call).content.text()
}

#[test]
fn declarations_equal_the_documentation() {
    let functions: Vec<Value> =
        demo().specs().iter().map(|spec| spec.to_json()["function"].clone()).collect();
    let expected = json!([
        {"name": "get_weather", "description": "Returns the weather for a given location.",
         "parameters": {"type": "object", "properties": {
            "location": {"type": "string", "description": "The location to get the weather for."}},
            "required": ["location"]}},
        {"name": "get_stock_price", "description": "Returns the stock price for a given stock symbol.",
         "parameters": {"type": "object", "properties": {
            "stock_symbol": {"type": "string", "description": "The stock symbol to get the price for."}},
            "required": ["stock_symbol"]}},
        {"name": "current_time", "description": "Get the current local time as a string.",
         "parameters": {"type": "object", "properties": {}}},
        {"name": "calculate", "description": "Calculate the result of an expression",
         "parameters": {"type": "object", "properties": {
            "expression": {"type": "string", "description": "Math expression"}},
            "required": ["expression"]}},
    ]);
    assert_eq!(Value::Array(functions).to_string(), expected.to_string());
}

#[test]
fn results_have_the_documented_keys_and_values() {
    let paris = concat!(
        r#"{"tool_name":"get_weather","location":"Paris","temperature":72,"unit":"F","#,
        r#""humidity":50,"condition":"Sunny"}"#
    );
    assert_eq!(call("get_weather", json!({"location": "Paris"})), paris);
    let googl = r#"{"tool_name":"get_stock_price","stock_symbol":"GOOGL","price":173.25,"currency":"USD"}"#;
    assert_eq!(call("get_stock_price", json!({"stock_symbol": "GOOGL"})), googl);
}

#[test]
fn made_up_values_stay_in_the_documented_ranges() {
    for index in 0..500 {
        let Weather { temperature, humidity, condition, .. } = get_weather(format!("Place {index}"));
        assert!((50..91).contains(&temperature) && (20..81).contains(&humidity), "{temperature} {humidity}");
        assert!(["Sunny", "Cloudy", "Rainy", "Windy"].contains(&condition));
        let price = get_stock_price(format!("S{index}")).price;
        assert!((100.0..=400.0).contains(&price) && (price * 100.0).round() / 100.0 == price, "{price}");
    }
    assert_eq!(get_weather("Oslo".to_owned()).temperature, get_weather(" oslo".to_owned()).temperature);
}

#[test]
fn calculate_returns_a_number_or_an_error() {
    assert_eq!(call("calculate", json!({"expression": "12 * (3 + 4)"})), "84");
    let error = r#"{"tool_name":"calculate","error":"expected a number at character 1, found `t`"}"#;
    assert_eq!(call("calculate", json!({"expression": "twelve"})), error);
}

#[test]
fn time_is_hours_and_minutes() {
    let noon: Zoned = "2026-03-01T09:05:59+01:00[Europe/Paris]".parse().expect("a time");
    assert_eq!(clock(&noon), "09:05");
    assert_eq!(call("current_time", json!({})).len(), "09:05".len());
}
