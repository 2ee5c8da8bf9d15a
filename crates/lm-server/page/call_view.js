// A call of a tool: arguments, question, result.

import { el, icon } from "./dom.js";
import { t } from "./text.js";

const OUTCOMES = { ok: t("done"), error: t("failed"), denied: t("denied") };

/** Shows a call; asks whether it may run while it has no result. */
export class CallView {
  #actions;
  #call = null;
  #isDone = false;
  #state = el("span", { class: "call-state" });
  #name = el("span", { class: "call-name" });
  #preview = el("span", { class: "call-preview" });
  #arguments = el("pre", { class: "call-text" });
  #result = el("pre", { class: "call-text result" });
  #resultPart = el("div", { hidden: true }, el("div", { class: "call-label" }, t("Result")), this.#result);
  #question;

  constructor(actions) {
    this.#actions = actions;
    const decide = (decision) => () => actions.decide(this.#call, decision);
    const button = (text, decision, kind = "") => el("button", { type: "button", class: `button ${kind}`, onclick: decide(decision) }, text);
    const buttons = [button(t("Approve"), "once", "primary"), button(t("Always allow"), "always"), button(t("Deny"), "deny")];
    this.#question = el("div", { class: "row question", role: "group", hidden: true }, el("span", {}, t("Run this tool?")), buttons);
    const head = el("summary", {}, icon("tool"), this.#name, this.#preview, this.#state);
    const labelled = el("div", { class: "call-label" }, t("Arguments"));
    this.details = el("details", { class: "call-details", open: true }, head, labelled, this.#arguments, this.#resultPart);
    this.element = el("div", { class: "call", role: "group" }, this.details, this.#question);
  }

  update(call, node, nodes, { isRunning, open }) {
    const result = nodes.find((other) => other.role === "tool" && other.call === call.id);
    const asks = !isRunning && node.state === "done" && open.includes(call);
    const outcome = result ? OUTCOMES[result.outcome] : asks ? t("waits for you") : t("calling…");
    // A call that is done folds; the user may open it again.
    if (result && !this.#isDone) this.details.open = false;
    this.#isDone = Boolean(result);
    this.#call = call;
    this.element.dataset.outcome = result?.outcome ?? (asks ? "open" : "streaming");
    this.element.setAttribute("aria-label", t("Call of {0}: {1}", call.name, outcome));
    setText(this.#name, call.name);
    setText(this.#state, outcome);
    setText(this.#preview, call.arguments.slice(0, 200));
    setText(this.#arguments, pretty(call.arguments || "{}"));
    this.#resultPart.hidden = !result;
    if (result) setText(this.#result, pretty(result.content));
    this.#question.setAttribute("aria-label", t("Run {0}?", call.name));
    this.#question.hidden = !asks;
    return this.element;
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** JSON on several lines; any other text as it is. */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
