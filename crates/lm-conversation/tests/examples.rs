//! The examples run, and say what they should.

use std::collections::BTreeSet;
use std::io::Cursor;

use serde_json::json;

#[allow(dead_code)] // Its `main` prints.
#[path = "../examples/tool_loop_async.rs"]
mod tool_loop_async;

use tool_loop_async::tool_loop;

/// Checks the answers about weather and price, whose values are random.
fn check(output: &[u8]) {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().collect();
    let [weather, price] = lines[..] else { panic!("two answers: {output}") };
    assert!(weather.starts_with("The weather in Paris is ") && weather.contains('F'), "{weather}");
    assert!(price.starts_with("The stock price of GOOGL is "), "{price}");
}

#[test]
fn results_of_the_tools_are_random_in_the_ranges_of_the_page() {
    let call =
        |name: &str| tool_loop::call_tool(name, &json!({"location": "Paris", "stock_symbol": "GOOGL"}));
    let (mut temperatures, mut prices) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..200 {
        let weather = call("get_weather");
        assert!((20..81).contains(&weather["humidity"].as_u64().expect("a number")), "{weather}");
        assert!(
            ["Sunny", "Cloudy", "Rainy", "Windy"].contains(&weather["condition"].as_str().expect("text"))
        );
        assert_eq!(
            (&weather["tool_name"], &weather["location"], &weather["unit"]),
            (&json!("get_weather"), &json!("Paris"), &json!("F"))
        );
        temperatures.insert(weather["temperature"].as_u64().expect("a number"));
        let price = call("get_stock_price");
        assert_eq!((&price["stock_symbol"], &price["currency"]), (&json!("GOOGL"), &json!("USD")));
        prices.insert((price["price"].as_f64().expect("a number") * 100.0).round() as u64);
    }
    let within = |values: &BTreeSet<u64>, start, end| values.iter().all(|value| (start..end).contains(value));
    assert!(within(&temperatures, 50, 91) && temperatures.len() > 10, "{temperatures:?}");
    assert!(within(&prices, 10_000, 40_001) && prices.len() > 100, "{prices:?}");
    let unknown = tool_loop::call_tool("get_weather", &json!({}));
    assert_eq!(unknown["location"], "Unknown");
    assert_eq!(
        tool_loop::call_tool("fly", &json!({})),
        json!({"tool_name": "fly", "error": "Tool not found"})
    );
}

#[test]
fn manual_loops_answer_until_an_empty_line() {
    let input = "How is the weather in Paris?\nWhat is the stock price of GOOGL?\n\nNot asked.\n";
    let mut output = Vec::new();
    tool_loop::chat(Cursor::new(input), &mut output).expect("two answers");
    check(&output);
}

#[test]
fn manual_loops_run_with_streamed_replies() {
    let questions = ["How is the weather in Paris?", "What is the stock price of GOOGL?"];
    let mut output = Vec::new();
    futures_executor::block_on(tool_loop_async::chat(&questions, &mut output)).expect("two answers");
    check(&output);
}
