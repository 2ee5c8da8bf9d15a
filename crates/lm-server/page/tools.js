// Demo tools, run by the page: names, schemas and results of `lm chat --tools demo`. Weather and prices are made up.

import { evaluate } from "./calculator.js";

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

/** A tool whose parameters are required texts; `parameters` has the description of each. */
const tool = (name, label, description, parameters, run) => ({ name, label, description, parameters, run });

/** The tools, in the order in which they are sent. */
export const TOOLS = [
  tool("get_weather", "Weather", "Returns the weather for a given location.", { location: "The location to get the weather for." }, weather),
  tool("get_stock_price", "Stock price", "Returns the stock price for a given stock symbol.", { stock_symbol: "The stock symbol to get the price for." }, stockPrice),
  tool("current_time", "Clock", "Get the current local time as a string.", {}, currentTime),
  tool("calculate", "Calculator", "Calculate the result of an expression", { expression: "Math expression" }, ({ expression }) => evaluate(expression)),
];

/** Declarations of the tools with these names, as the API takes them. */
export function declarations(names) {
  return TOOLS.filter(({ name }) => names.includes(name)).map(({ name, description, parameters }) => {
    const entries = Object.entries(parameters);
    const properties = Object.fromEntries(entries.map(([key, description]) => [key, { type: "string", description }]));
    const required = entries.map(([key]) => key);
    return { type: "function", function: { name, description, parameters: { type: "object", properties, required } } };
  });
}

/** Returns the error of a call that cannot be run, for the model to read; null for any other. */
export function callError(call, names) {
  const found = TOOLS.find(({ name }) => name === call.name && names.includes(name));
  if (!found) return `there is no tool \`${call.name}\`; there are: ${names.join(", ") || "none"}`;
  const values = argumentsOf(call);
  if (!values) return "the arguments are not a JSON object";
  const missing = Object.keys(found.parameters).find((key) => typeof values[key] !== "string");
  return missing ? `the argument \`${missing}\` is missing, or is not a text` : null;
}

function argumentsOf(call) {
  try {
    const values = JSON.parse(call.arguments || "{}");
    return values && typeof values === "object" && !Array.isArray(values) ? values : null;
  } catch {
    return null;
  }
}

/** Runs a call without a [`callError`]; returns its result as text, and whether it failed. */
export function runCall(call) {
  try {
    const result = TOOLS.find(({ name }) => name === call.name).run(argumentsOf(call));
    return { outcome: "ok", content: typeof result === "string" ? result : spaced(result) };
  } catch (error) {
    return failure(error.message);
  }
}

/** Result of a call that fails. */
export const failure = (error) => ({ outcome: "error", content: spaced({ error }) });

/** JSON with a space after `:` and `,`, as chat templates write it: small models read it better. */
function spaced(value) {
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${JSON.stringify(part)}`).join(", ")}}`;
}
