// Settings of a conversation: their defaults, their fields of a request, and the panel that edits them.

import { byId, el } from "./dom.js";
import { t } from "./text.js";
import { TOOLS, declarations } from "./tools.js";

/** Number fields: name in requests, label, description, limits. An empty one leaves the value to the model. */
const NUMBERS = [
  { name: "temperature", label: t("Temperature"), hint: t("0 always takes the most probable token"), min: 0, max: 5, step: "any" },
  { name: "top_p", label: t("Top p"), hint: t("smallest set of tokens with this total probability"), min: 0, max: 1, step: "any" },
  { name: "top_k", label: t("Top k"), hint: t("number of most probable tokens; 0 is all"), min: 0, max: 1000000, step: 1 },
  { name: "max_tokens", label: t("Max tokens"), hint: t("longest reply"), min: 1, max: 10000000, step: 1 },
  { name: "seed", label: t("Seed"), hint: t("the same seed gives the same reply"), min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
  { name: "min_p", label: t("Min p"), hint: t("drops tokens less probable than this times the most probable one; 0 is off"), min: 0, max: 1, step: "any", isRare: true },
  { name: "repetition_penalty", label: t("Repetition penalty"), hint: t("of tokens in prompt and reply; 1 is off"), min: 0.01, max: 10, step: "any", isRare: true },
  { name: "presence_penalty", label: t("Presence penalty"), hint: t("subtracted once for a token of the reply; 0 is off"), min: -10, max: 10, step: "any", isRare: true },
  { name: "frequency_penalty", label: t("Frequency penalty"), hint: t("subtracted for each time that a token occurs; 0 is off"), min: -10, max: 10, step: "any", isRare: true },
];

/** Text fields: name, label, description, and fields of a request; `read` throws if the text is invalid. */
const TEXTS = [
  { name: "stop", label: t("Stop strings"), hint: t("a reply ends before any of these lines"), read: (text) => ({ stop: text.split("\n").filter(Boolean) }) },
  { name: "schema", label: t("JSON Schema"), hint: t("a reply is JSON of this schema"), read: (text) => ({ response_format: { type: "json_schema", json_schema: { name: "reply", schema: readSchema(text) } } }) },
];

function readSchema(text) {
  const schema = JSON.parse(text);
  if (typeof schema !== "object" || !schema || Array.isArray(schema)) throw new Error(t('a schema is an object, such as {"type": "object"}'));
  return schema;
}

/** Efforts of reasoning, for models that know them; "" is the model's own. */
const EFFORTS = ["", "low", "medium", "high"];

/** Settings of the first conversation. `allowed` are the tools that run without being approved. */
export const defaults = () => ({ model: "", system: "", numbers: {}, texts: {}, effort: "", thinking: true, truncates: false, tools: [], allowed: [] });

/** Settings of a new conversation: those of the last one, without its approvals. */
export const inherited = (settings) => ({ ...defaults(), ...structuredClone(settings ?? {}), allowed: [] });

/** Returns the settings that are valid in a value from a file. */
export function checkedSettings(value) {
  const { model, system, numbers, texts, effort, thinking, truncates, tools } = value ?? {};
  const names = TOOLS.map(({ name }) => name);
  const valid = NUMBERS.filter(({ name, min, max }) => Number.isFinite(numbers?.[name]) && numbers[name] >= min && numbers[name] <= max);
  return {
    ...defaults(),
    model: typeof model === "string" ? model : "",
    system: typeof system === "string" ? system : "",
    numbers: Object.fromEntries(valid.map(({ name }) => [name, numbers[name]])),
    texts: Object.fromEntries(TEXTS.filter(({ name }) => typeof texts?.[name] === "string").map(({ name }) => [name, texts[name]])),
    effort: EFFORTS.includes(effort) ? effort : "",
    thinking: thinking !== false,
    truncates: truncates === true,
    tools: Array.isArray(tools) ? tools.filter((name) => names.includes(name)) : [],
  };
}

/** Settings with those of a preset, whose options have the names of the command line: `top-p`, `system`, … What it does not have is the model's, but for the system prompt, which stays. */
export function withPreset(settings, options) {
  const number = ({ name, min, max }) => {
    const value = options[name.replaceAll("_", "-")];
    return Number.isFinite(value) && value >= min && value <= max ? [[name, value]] : [];
  };
  const stop = [options.stop ?? []].flat().join("\n");
  return {
    system: typeof options.system === "string" ? options.system : settings.system,
    numbers: Object.fromEntries(NUMBERS.flatMap(number)),
    texts: stop ? { stop } : {},
    thinking: options.thinking !== "off",
  };
}

/** Fields of a request. Settings of an older page have no texts. */
export function requestFields({ model, numbers, texts = {}, effort = "", thinking, truncates, tools }) {
  const reasoning = thinking ? effort : "none";
  return {
    ...(model && { model }),
    ...numbers,
    ...textFields(texts),
    ...(reasoning && { reasoning_effort: reasoning }),
    ...(truncates && { truncation: "auto" }),
    ...(tools.length && { tools: declarations(tools) }),
  };
}

/** Fields of the valid texts: the panel marks the others. */
function textFields(texts) {
  const valid = TEXTS.filter(({ name, read }) => texts[name]?.trim() && !problemOf(read, texts[name]));
  return Object.assign({}, ...valid.map(({ name, read }) => read(texts[name])));
}

function problemOf(read, text) {
  try {
    if (text.trim()) read(text);
    return null;
  } catch ({ message }) {
    return message;
  }
}

/** Panel of the settings; `changed` is called after each change. */
export class SettingsPanel {
  #settings = defaults();
  #changed;
  #inputs = {};
  #texts = {};
  #switches = {};

  constructor(changed) {
    this.#changed = changed;
    for (const field of NUMBERS) byId(field.isRare ? "rare-numbers" : "numbers").append(this.#number(field));
    byId("texts").append(...TEXTS.map((field) => this.#text(field)));
    byId("effort").append(...EFFORTS.map((effort) => el("option", { value: effort }, effort || t("model's"))));
    byId("effort").addEventListener("change", ({ target }) => this.#set({ effort: target.value }));
    byId("tool-switches").append(...TOOLS.map((tool) => this.#tool(tool)));
    byId("system").addEventListener("input", ({ target }) => this.#set({ system: target.value }));
    byId("truncates").addEventListener("change", ({ target }) => this.#set({ truncates: target.checked }));
    byId("thinking").addEventListener("change", ({ target }) => this.#set({ thinking: target.checked }));
  }

  /** Offers the presets of the server. */
  addPresets(presets) {
    const menu = byId("preset");
    menu.append(...presets.map(({ name }) => el("option", { value: name }, name)));
    byId("preset-field").hidden = presets.length === 0;
    menu.addEventListener("change", () => {
      // A field that is being typed would keep its value.
      menu.focus();
      const { options } = presets.find(({ name }) => name === menu.value) ?? {};
      if (options) this.#set(withPreset(this.#settings, options));
      menu.value = "";
    });
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
    const isSame = settings === this.#settings;
    this.#settings = settings;
    byId("system").value = settings.system;
    byId("thinking").checked = settings.thinking;
    byId("truncates").checked = settings.truncates === true;
    byId("effort").value = settings.effort ?? "";
    for (const { name } of NUMBERS) write(this.#inputs[name], settings.numbers[name] ?? "", isSame);
    for (const { name } of TEXTS) write(this.#texts[name], settings.texts?.[name] ?? "", isSame);
    for (const { name } of TOOLS) this.#switches[name].checked = settings.tools.includes(name);
  }

  #set(values) {
    Object.assign(this.#settings, values);
    this.#changed();
  }

  #number({ name, label, hint, min, max, step }) {
    const input = el("input", { type: "number", id: `set-${name}`, min, max, step, placeholder: t("model's"), "aria-describedby": `hint-${name}` });
    const note = el("small", { id: `hint-${name}` }, hint);
    const limits = t(step === 1 ? "not used: this is a whole number from {0} to {1}" : "not used: this is a number from {0} to {1}", min, max);
    const check = () => mark(input, note, input.checkValidity() ? null : limits, hint);
    input.addEventListener("check", check);
    input.addEventListener("input", () => {
      check();
      const { [name]: _, ...others } = this.#settings.numbers;
      const isSet = input.value !== "" && input.checkValidity();
      this.#set({ numbers: isSet ? { ...others, [name]: input.valueAsNumber } : others });
    });
    this.#inputs[name] = input;
    return el("div", { class: "field" }, el("label", { for: input.id }, label), input, note);
  }

  #text({ name, label, hint, read }) {
    const area = el("textarea", { id: `set-${name}`, rows: 3, spellcheck: "false", "aria-describedby": `hint-${name}` });
    const note = el("small", { id: `hint-${name}` }, hint);
    const check = () => {
      const problem = problemOf(read, area.value);
      mark(area, note, problem && t("not used: {0}", problem), hint);
    };
    area.addEventListener("check", check);
    area.addEventListener("input", () => {
      check();
      this.#set({ texts: { ...this.#settings.texts, [name]: area.value } });
    });
    this.#texts[name] = area;
    return el("div", { class: "field" }, el("label", { for: area.id }, label), area, note);
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

/** Writes a value into a field; of the same settings, one that is being typed or invalid stays. */
function write(input, value, isSame) {
  if (isSame && (input === document.activeElement || input.getAttribute("aria-invalid"))) return;
  input.value = value;
  input.dispatchEvent(new Event("check"));
}

/** Marks a field as invalid with its problem, or as valid. */
function mark(input, note, problem, hint) {
  if (problem) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  note.textContent = problem ?? hint;
}
