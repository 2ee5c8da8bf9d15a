// Runner of the flows of a client in Node: prints a line of JSON for each, with its name, result and reason.

import assert from "node:assert/strict";

export const URL = process.env.LM_URL;
export const OPENAI = `${URL}/v1`;
export const MODEL = "pocket";
export const SYSTEM = "You are a helpful assistant.";
export const QUESTION = "How is the weather in Paris?";
/** With the blanks that the embedded model has learnt; it misreads text without them. */
export const RESULT = '{"location": "Paris", "temperature": 72, "unit": "F", "humidity": 50, "condition": "Sunny"}';
export const LONG = "word ".repeat(5000);
const parameter = (name, description) => ({
  type: "object",
  properties: { [name]: { type: "string", description } },
  required: [name],
});
export const FUNCTIONS = [
  {
    name: "get_weather",
    description: "Returns the weather for a given location.",
    parameters: parameter("location", "The location to get the weather for."),
  },
  {
    name: "get_stock_price",
    description: "Returns the stock price for a given stock symbol.",
    parameters: parameter("stock_symbol", "The stock symbol to get the price for."),
  },
];
export const COLOUR = {
  type: "object",
  properties: { name: { type: "string", maxLength: 20 }, warm: { type: "boolean" } },
  required: ["name", "warm"],
  additionalProperties: false,
};

/** Checks the call of the question, with its arguments as an object. */
export function checkCall(name, input) {
  assert.equal(name, "get_weather");
  assert.deepEqual(Object.keys(input), ["location"]);
  assert.match(input.location, /^Paris/);
}

/** Checks the answer to the question, after the tool's result. */
export function checkAnswer(text) {
  assert.match(text, /Paris.*72/);
}

/** Waits for a stream of values. */
export async function collect(stream) {
  const values = [];
  for await (const value of stream) values.push(value);
  return values;
}

/** Runs the flows, by name, one after another. */
export async function run(flows) {
  for (const [flow, check] of Object.entries(flows)) {
    let [result, reason] = ["passed", ""];
    try {
      await check();
    } catch (error) {
      if (process.env.LM_TRACE) console.error(error);
      [result, reason] = ["failed", `${error.name}: ${error.message}`.replace(/\s+/g, " ")];
    }
    console.log(JSON.stringify({ flow, result, reason }));
  }
}
