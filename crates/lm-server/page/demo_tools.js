// Demo tools, run by the page: names, schemas and results of `lm chat --tools demo`. Weather and prices are made up.

import { evaluate } from "./calculator.js";
import { spaced } from "./spaced.js";
import { t } from "./text.js";

const CONDITIONS = ["Sunny", "Cloudy", "Rainy", "Windy"];

/** 64-bit FNV-1a hash. */
function hash(text) {
  const bytes = new TextEncoder().encode(text);
  return bytes.reduce((hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n);
}

function weather({ location }) {
  const key = location.trim().toLowerCase();
  const number = hash(key);
  const [temperature, humidity, condition] =
    key === "paris"
      ? [72, 50, "Sunny"]
      : [50 + Number(number % 41n), 20 + Number((number >> 16n) % 61n), CONDITIONS[Number((number >> 32n) % 4n)]];
  return { tool_name: "get_weather", location, temperature, unit: "F", humidity, condition };
}

function stockPrice({ stock_symbol }) {
  const key = stock_symbol.trim().toUpperCase();
  const cents = key === "GOOGL" ? 17325 : 10000 + Number(hash(key) % 30001n);
  return { tool_name: "get_stock_price", stock_symbol, price: cents / 100, currency: "USD" };
}

function currentTime() {
  const now = new Date();
  return [now.getHours(), now.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** A tool whose parameters are required texts; `texts` has the description of each. */
const tool = (name, label, description, texts, run) => {
  const properties = Object.fromEntries(Object.entries(texts).map(([key, description]) => [key, { type: "string", description }]));
  const parameters = { type: "object", properties, required: Object.keys(texts) };
  return { name, label, description, parameters, run: (values) => answer(texts, values, run) };
};

function answer(texts, values, run) {
  const wrong = Object.keys(texts).find((key) => typeof values[key] !== "string");
  if (wrong) throw new Error(`the argument \`${wrong}\` is not a text`);
  const result = run(values);
  return typeof result === "string" ? result : spaced(result);
}

/** The tools. `run` returns the result as text, or throws an error for the model to read. */
export const DEMO_TOOLS = [
  tool("get_weather", t("Weather"), "Returns the weather for a given location.", { location: "The location to get the weather for." }, weather),
  tool("get_stock_price", t("Stock price"), "Returns the stock price for a given stock symbol.", { stock_symbol: "The stock symbol to get the price for." }, stockPrice),
  tool("current_time", t("Clock"), "Get the current local time as a string.", {}, currentTime),
  tool("calculate", t("Calculator"), "Calculate the result of an expression", { expression: "Math expression" }, ({ expression }) => evaluate(expression)),
];
