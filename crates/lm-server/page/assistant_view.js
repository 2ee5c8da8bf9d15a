// A turn of the assistant: replies, their reasoning, and their calls with results.

import { BranchSwitch } from "./branch_switch.js";
import { CallView } from "./call_view.js";
import { copyButton, el, iconButton, setChildren } from "./dom.js";
import { CONTEXT_FULL } from "./full_context.js";
import { MarkdownView } from "./markdown_view.js";
import { fillsContext, progressText, seconds, statsText, statsTitle } from "./stats.js";
import { t } from "./text.js";

/** Shows the replies to one message of the user, and the results of their calls. */
export class AssistantView {
  #nodes = [];
  #replies = new Map();
  #body = el("div", { class: "replies" });
  #stats = el("span", { class: "stats" });
  #branches;
  #buttons;
  #continue;

  constructor(actions) {
    this.actions = actions;
    this.#branches = new BranchSwitch((node) => actions.select(node));
    const regenerate = iconButton("retry", t("Regenerate"), () => actions.regenerate(this.#nodes[0]));
    const remove = iconButton("trash", t("Delete reply"), () => actions.remove(this.#nodes[0]));
    this.#continue = iconButton("continue", t("Continue"), () => actions.extend(this.#nodes.at(-1)));
    this.#buttons = [regenerate, this.#continue, remove];
    const copy = copyButton(t("Copy reply"), () => this.#text());
    const footer = el("div", { class: "actions" }, this.#branches.element, copy, regenerate, this.#continue, remove, this.#stats);
    this.element = el("article", { class: "message assistant", "aria-label": t("Assistant") }, this.#body, footer);
  }

  update(nodes, context) {
    this.#nodes = nodes;
    const replies = nodes.filter(({ role }) => role === "assistant");
    setChildren(this.#body, replies.map((node) => this.#reply(node).update(node, nodes, context)));
    this.#branches.update(nodes[0], context);
    const last = nodes.at(-1);
    const isStreaming = last === context.last && context.isRunning;
    this.element.classList.toggle("streaming", isStreaming);
    this.element.setAttribute("aria-busy", isStreaming);
    for (const button of this.#buttons) button.disabled = context.isRunning;
    this.#continue.hidden = !(last === context.last && isCut(last) && !fillsContext(last, context.contextTokens));
    const [text, title] = [statsText(replies), statsTitle(replies)];
    if (this.#stats.textContent !== text) this.#stats.textContent = text;
    this.#stats.title = title;
  }

  #reply(node) {
    const view = this.#replies.get(node.id) ?? new ReplyView(this.actions);
    this.#replies.set(node.id, view);
    return view;
  }

  #text() {
    const texts = this.#nodes.filter(({ role }) => role === "assistant").map(({ content }) => content);
    return texts.filter(Boolean).join("\n\n");
  }
}

/** True for a reply with text that ended before the model was done. */
const isCut = ({ role, content, calls, state, finish }) =>
  role === "assistant" && content && !calls.length && (state !== "done" || finish === "length");

/** One reply: reasoning, text, calls, and the error that ended it. */
class ReplyView {
  #reasoning = new ReasoningView();
  #markdown;
  #calls = [];
  #callList = el("div", { class: "calls" });
  #problem = el("div", { class: "problem" });
  #progress = el("span", { class: "progress" });
  #waiting = el("div", { class: "waiting" }, el("span", { class: "dots", role: "img", "aria-label": t("Waiting for the model") }, el("i"), el("i"), el("i")), this.#progress);
  #shownProblem = null;

  constructor(actions) {
    this.actions = actions;
    this.#markdown = new MarkdownView(actions.api);
    this.element = el("div", { class: "reply" }, this.#reasoning.element, this.#markdown.element, this.#callList, this.#waiting, this.#problem);
  }

  update(node, nodes, context) {
    this.#reasoning.update(node);
    this.#markdown.update(node.content, node.state !== "streaming");
    this.#waiting.hidden = !(context.isRunning && node.state === "streaming" && !node.content && !node.reasoning && !node.calls.length);
    const progress = progressText(context.progress(node));
    if (this.#progress.textContent !== progress) this.#progress.textContent = progress;
    while (this.#calls.length < node.calls.length) this.#calls.push(new CallView(this.actions));
    this.#calls.length = node.calls.length;
    setChildren(this.#callList, this.#calls.map((view, index) => view.update(node.calls[index], node, nodes, context)));
    this.#updateProblem(node, context.contextTokens);
    return this.element;
  }

  #updateProblem(node, contextTokens) {
    const text = problem(node, contextTokens);
    if (text === this.#shownProblem) return;
    this.#shownProblem = text;
    this.#problem.hidden = !text;
    this.#problem.classList.toggle("failed", node.state === "error");
    this.#problem.setAttribute("role", node.state === "error" ? "alert" : "note");
    const button = (label, onclick) => el("button", { type: "button", class: "button", onclick }, label);
    const full = [button(t("Leave out the oldest messages"), () => this.actions.leaveOut(node)), button(t("Go on from a summary"), () => this.actions.summarise(node))];
    const buttons = node.state !== "error" ? [] : [...(node.code === CONTEXT_FULL ? full : []), button(t("Try again"), () => this.actions.retry(node))];
    this.#problem.replaceChildren(text ?? "", ...buttons);
  }
}

/** Line about a reply that did not end by itself. */
function problem(node, contextTokens) {
  const { state, error, finish } = node;
  if (state === "error") return error;
  if (state === "stopped") return t("Stopped.");
  if (state === "closed") return t("The page was closed before the reply was complete.");
  if (finish === "length" && fillsContext(node, contextTokens)) return t("The context is full: the next message will offer to leave out the oldest ones, or to go on from a summary.");
  if (finish === "length") return t("The reply has reached its largest number of tokens.");
  return null;
}

/** Folded reasoning. */
class ReasoningView {
  #summary = el("summary", {});
  #text = el("div", { class: "reasoning-text" });
  element = el("details", { class: "reasoning", hidden: true }, this.#summary, this.#text);

  update({ reasoning, content, calls, state, stats }) {
    this.element.hidden = !reasoning;
    if (!reasoning) return;
    const isThinking = state === "streaming" && !content && !calls.length;
    const label = isThinking ? t("Thinking…") : stats?.reasoningMs ? t("Thought for {0}", seconds(stats.reasoningMs)) : t("Thoughts");
    this.element.classList.toggle("thinking", isThinking);
    if (this.#summary.textContent !== label) this.#summary.textContent = label;
    if (this.#text.textContent !== reasoning) this.#text.textContent = reasoning;
  }
}
