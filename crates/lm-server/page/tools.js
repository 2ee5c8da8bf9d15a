// Tools that the model may call: the demo tools of this page, and those of the server.

import { DEMO_TOOLS } from "./demo_tools.js";
import { spaced } from "./spaced.js";

/** The tools, in the order in which they are sent: {name, label, description, parameters, run(values, signal)}. */
export const TOOLS = [...DEMO_TOOLS];

/** Adds the tools of the server, as it lists them; one takes the place of the page's tool of its name. Returns them. */
export function addServerTools(api, list) {
  const added = list.map(({ function: { name, description = "", parameters = { type: "object" } }, annotations }) => ({
    name,
    label: annotations?.title || name,
    description,
    parameters,
    run: (values, signal) => callServer(api, name, values, signal),
  }));
  const names = new Set(added.map(({ name }) => name));
  TOOLS.splice(0, TOOLS.length, ...DEMO_TOOLS.filter(({ name }) => !names.has(name)), ...added);
  return added;
}

async function callServer(api, name, values, signal) {
  const { content, parts, is_error: isError } = await api.callTool(name, values, signal);
  const result = { outcome: isError ? "error" : "ok", content: respaced(content) };
  return parts ? { ...result, parts } : result; // Images and audio, for a model that reads them.
}

/** A text with its JSON spaced, if it is an object or a list. */
function respaced(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? spaced(value) : text;
  } catch {
    return text;
  }
}

/** Declarations of the tools with these names, as the API takes them. */
export function declarations(names) {
  const chosen = TOOLS.filter(({ name }) => names.includes(name));
  return chosen.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));
}

/** Returns the error of a call that cannot be run, for the model to read; null for any other. */
export function callError(call, names) {
  const tool = names.includes(call.name) && find(call);
  if (!tool) return `there is no tool \`${call.name}\`; there are: ${names.join(", ") || "none"}`;
  const values = argumentsOf(call);
  if (!values) return "the arguments are not a JSON object";
  const missing = tool.parameters.required?.find((key) => !Object.hasOwn(values, key));
  return missing === undefined ? null : `the argument \`${missing}\` is missing`;
}

const find = (call) => TOOLS.find(({ name }) => name === call.name);

function argumentsOf(call) {
  try {
    const values = JSON.parse(call.arguments || "{}");
    return values && typeof values === "object" && !Array.isArray(values) ? values : null;
  } catch {
    return null;
  }
}

/** Runs a call without a [`callError`]; returns its result as text, and whether it failed. */
export async function runCall(call, signal) {
  try {
    const result = await find(call).run(argumentsOf(call), signal);
    return typeof result === "string" ? { outcome: "ok", content: result } : result;
  } catch (error) {
    return failure(error.name === "AbortError" ? "the user stopped this call, which may have had effects" : error.message);
  }
}

/** Result of a call that fails. */
export const failure = (error) => ({ outcome: "error", content: spaced({ error }) });
