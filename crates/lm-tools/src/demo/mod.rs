//! Demo tools.

mod arithmetic;

use arithmetic::{ArithmeticError, evaluate};

use crate::toolset::Toolset;
use crate::{tool, toolset};
use jiff::Zoned;
use serde::Serialize;
use serde_json::Number;

/// Creates four tools: `get_weather` and `get_stock_price` with the declarations and results of LiteRT-LM's
/// tool use page, `current_time` and `calculate`. Weather and prices are made up, and deterministic for each
/// place or symbol.
///
/// ```
/// let names: Vec<String> = lm_tools::demo().specs().iter().map(|spec| spec.name().to_owned()).collect();
/// assert_eq!(names, ["get_weather", "get_stock_price", "current_time", "calculate"]);
/// ```
pub fn demo() -> Toolset {
    toolset![get_weather, get_stock_price, current_time, calculate]
        .expect("four names, and schemas made from types")
}

/// The result of `get_weather`.
#[derive(Debug, Serialize)]
struct Weather {
    tool_name: &'static str,
    location: String,
    temperature: u64,
    unit: &'static str,
    humidity: u64,
    condition: &'static str,
}

/// The result of `get_stock_price`.
#[derive(Debug, Serialize)]
struct StockPrice {
    tool_name: &'static str,
    stock_symbol: String,
    price: f64,
    currency: &'static str,
}

/// Returns the weather for a given location.
///
/// # Arguments
/// - `location`: The location to get the weather for.
#[tool(read_only, open_world = false)]
fn get_weather(location: String) -> Weather {
    const CONDITIONS: [&str; 4] = ["Sunny", "Cloudy", "Rainy", "Windy"];
    let key = location.trim().to_lowercase();
    let (temperature, humidity, condition) = match key.as_str() {
        "paris" => (72, 50, "Sunny"),
        key => {
            let hash = hash(key);
            (50 + hash % 41, 20 + (hash >> 16) % 61, CONDITIONS[(hash >> 32) as usize % CONDITIONS.len()])
        }
    };
    Weather { tool_name: "get_weather", location, temperature, unit: "F", humidity, condition }
}

/// Returns the stock price for a given stock symbol.
///
/// # Arguments
/// - `stock_symbol`: The stock symbol to get the price for.
#[tool(read_only, open_world = false)]
fn get_stock_price(stock_symbol: String) -> StockPrice {
    let key = stock_symbol.trim().to_uppercase();
    let cents = match key.as_str() {
        "GOOGL" => 17_325,
        key => 10_000 + hash(key) % 30_001,
    };
    StockPrice { tool_name: "get_stock_price", stock_symbol, price: cents as f64 / 100.0, currency: "USD" }
}

/// Get the current local time as a string.
#[tool(read_only, open_world = false)]
fn current_time() -> String {
    clock(&Zoned::now())
}

/// Calculate the result of an expression
///
/// # Arguments
/// - `expression`: Math expression
#[tool(read_only, open_world = false)]
fn calculate(expression: String) -> Result<Number, ArithmeticError> {
    evaluate(&expression)
}

fn clock(now: &Zoned) -> String {
    now.strftime("%H:%M").to_string()
}

/// 64-bit FNV-1a hash: the same on every machine and in every release.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
