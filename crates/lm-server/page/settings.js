// Settings of a conversation: their defaults, their fields of a request, and the panel that edits them.

import { byId, el } from "./dom.js";
import { TOOLS, declarations } from "./tools.js";

/** Number fields: name in requests, label, description, limits. An empty one leaves the value to the model. */
const NUMBERS = [
  { name: "temperature", label: "Temperature", hint: "0 always takes the most probable token", min: 0, max: 5, step: "any" },
  { name: "top_p", label: "Top p", hint: "smallest set of tokens with this total probability", min: 0, max: 1, step: "any" },
  { name: "top_k", label: "Top k", hint: "number of most probable tokens; 0 is all", min: 0, max: 1000000, step: 1 },
  { name: "max_tokens", label: "Max tokens", hint: "longest reply", min: 1, max: 10000000, step: 1 },
  { name: "seed", label: "Seed", hint: "the same seed gives the same reply", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
];

/** Settings of the first conversation. `allowed` are the tools that run without being approved. */
export const defaults = () => ({ model: "", system: "", numbers: {}, thinking: true, tools: [], allowed: [] });

/** Settings of a new conversation: those of the last one, without its approvals. */
export const inherited = (settings) => ({ ...defaults(), ...structuredClone(settings ?? {}), allowed: [] });

/** Returns the settings that are valid in a value from a file. */
export function checkedSettings(value) {
  const { model, system, numbers, thinking, tools } = value ?? {};
  const names = TOOLS.map(({ name }) => name);
  const valid = NUMBERS.filter(({ name, min, max }) => Number.isFinite(numbers?.[name]) && numbers[name] >= min && numbers[name] <= max);
  return {
    ...defaults(),
    model: typeof model === "string" ? model : "",
    system: typeof system === "string" ? system : "",
    numbers: Object.fromEntries(valid.map(({ name }) => [name, numbers[name]])),
    thinking: thinking !== false,
    tools: Array.isArray(tools) ? tools.filter((name) => names.includes(name)) : [],
  };
}

/** Fields of a request. */
export function requestFields({ model, numbers, thinking, tools }) {
  return {
    ...(model && { model }),
    ...numbers,
    ...(!thinking && { reasoning_effort: "none" }),
    ...(tools.length && { tools: declarations(tools) }),
  };
}

/** Panel of the settings; `changed` is called after each change. */
export class SettingsPanel {
  #settings = defaults();
  #changed;
  #inputs = {};
  #switches = {};

  constructor(changed) {
    this.#changed = changed;
    byId("numbers").append(...NUMBERS.map((field) => this.#number(field)));
    byId("tool-switches").append(...TOOLS.map((tool) => this.#tool(tool)));
    byId("system").addEventListener("input", ({ target }) => this.#set({ system: target.value }));
    byId("thinking").addEventListener("change", ({ target }) => this.#set({ thinking: target.checked }));
  }

  /** Adds switches for the tools of the server. */
  addServerTools(tools) {
    for (const { name } of tools) byId(`tool-${name}`)?.closest("label").remove();
    byId("server-tools").hidden = tools.length === 0;
    byId("server-tool-switches").append(...tools.map((tool) => this.#tool(tool)));
    this.show(this.#settings);
  }

  /** Shows these settings, and changes them from now on. */
  show(settings) {
    this.#settings = settings;
    byId("system").value = settings.system;
    byId("thinking").checked = settings.thinking;
    for (const { name } of NUMBERS) this.#inputs[name].value = settings.numbers[name] ?? "";
    for (const { name } of TOOLS) this.#switches[name].checked = settings.tools.includes(name);
  }

  #set(values) {
    Object.assign(this.#settings, values);
    this.#changed();
  }

  #number({ name, label, hint, min, max, step }) {
    const input = el("input", { type: "number", id: `set-${name}`, min, max, step, placeholder: "model's", "aria-describedby": `hint-${name}` });
    input.addEventListener("input", () => {
      if (!input.checkValidity()) return;
      const { [name]: _, ...others } = this.#settings.numbers;
      this.#set({ numbers: input.value === "" ? others : { ...others, [name]: input.valueAsNumber } });
    });
    this.#inputs[name] = input;
    return el("div", { class: "field" }, el("label", { for: input.id }, label), input, el("small", { id: `hint-${name}` }, hint));
  }

  #tool({ name, label, description }) {
    const input = el("input", { type: "checkbox", role: "switch", id: `tool-${name}` });
    input.addEventListener("change", () => {
      const names = TOOLS.map((tool) => tool.name).filter((other) => this.#switches[other].checked);
      this.#set({ tools: names });
    });
    this.#switches[name] = input;
    return el("label", { class: "switch", title: description }, el("span", {}, label, el("code", {}, name)), input);
  }
}
