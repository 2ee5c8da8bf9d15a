// Replies: streams them into a conversation, runs approved calls, and continues until the model is done or a call waits for approval.

import { summaryRequest } from "./full_context.js";
import { chooseExcerpts } from "./passages.js";
import { requestFields } from "./settings.js";
import { t } from "./text.js";
import { callError, failure, runCall } from "./tools.js";
import { append, openCalls, path, toMessages } from "./tree.js";

/** Largest number of replies to one message: a model can call tools for ever. */
const MAX_ROUNDS = 16;
const DENIED = "the user denied this call";

/** Runs conversations. `hooks` are changed(conversation, node), called while a reply grows, ended(conversation, node), after each reply, and contextTokens(model), which resolves to the context of a model. */
export class Runner {
  #api;
  #hooks;
  /** Controllers of running requests, by the conversation's id. */
  #running = new Map();
  /** Progress of the prompts of replies that have not begun, by node. */
  #progress = new WeakMap();

  constructor(api, hooks) {
    this.#api = api;
    this.#hooks = hooks;
  }

  isRunning(conversation) {
    return this.#running.has(conversation.id);
  }

  /** How far the prompt of a reply has been read: `total`, `cache`, `processed` and `time_ms`; undefined before and after. */
  progress(node) {
    return this.#progress.get(node);
  }

  stop(conversation) {
    this.#running.get(conversation.id)?.abort();
  }

  /** Answers a message again: begins a branch beside `node`. */
  async regenerate(conversation, node) {
    const nodes = path(conversation);
    await this.advance(conversation, nodes.slice(0, nodes.indexOf(node)));
  }

  /** Continues the conversation from its end, or from the end of these messages. */
  async advance(conversation, start = path(conversation)) {
    if (this.isRunning(conversation)) return;
    for (let nodes = start, round = 0; round < MAX_ROUNDS; nodes = path(conversation), round += 1) {
      const last = nodes.at(-1);
      if (!last || openCalls(nodes).length || (last.role === "assistant" && !last.calls.length)) return;
      const node = this.#newReply(conversation, last.id);
      await this.#stream(conversation, node, nodes);
      if (node.state !== "done" || !(await this.#runAllowed(conversation))) return;
    }
    const last = path(conversation).at(-1);
    if (last.role === "tool") this.#tooMany(conversation, last);
  }

  /** Continues a reply that has been cut; one without text starts over. */
  async extend(conversation, node) {
    if (this.isRunning(conversation)) return;
    // Templates trim the space at the end of a message, and a reply continues from the rendered text.
    node.content = node.content.trimEnd();
    if (!node.content) return this.regenerate(conversation, node);
    await this.#stream(conversation, node, path(conversation), { continue_final_message: true });
    if (node.state === "done" && (await this.#runAllowed(conversation))) await this.advance(conversation);
  }

  /** Runs or denies a call; the conversation continues when no call is open. */
  async decide(conversation, call, decision) {
    if (this.isRunning(conversation)) return;
    const { settings } = conversation;
    if (decision === "always") settings.allowed = [...new Set([...settings.allowed, call.name])];
    if (decision === "deny") this.#answer(conversation, call, { outcome: "denied", content: DENIED });
    else if (!(await this.#run(conversation, call))) return;
    if (decision === "always" && !(await this.#runAllowed(conversation))) return;
    this.#hooks.changed(conversation);
    await this.advance(conversation);
  }

  /** Denies the open calls, because the user has said something else. */
  denyOpen(conversation) {
    for (const call of openCalls(path(conversation))) this.#answer(conversation, call, { outcome: "denied", content: DENIED });
  }

  /** Has the model write a summary of these messages. */
  async summarise(conversation, nodes) {
    const { settings } = conversation;
    const body = summaryRequest(nodes, settings, await this.#hooks.contextTokens(settings.model));
    let text = "";
    for await (const { choices } of this.#api.chat(body)) text += choices?.[0]?.delta?.content ?? "";
    return text;
  }

  /** Runs the calls that need no approval; returns false if the user has stopped one. */
  async #runAllowed(conversation) {
    const { tools, allowed } = conversation.settings;
    for (const call of openCalls(path(conversation))) {
      const error = callError(call, tools);
      if (error) this.#answer(conversation, call, failure(error));
      else if (allowed.includes(call.name) && !(await this.#run(conversation, call))) return false;
    }
    return true;
  }

  /** Runs a call; returns false if the user has stopped it. */
  async #run(conversation, call) {
    const controller = new AbortController();
    const end = path(conversation).at(-1);
    this.#running.set(conversation.id, controller);
    this.#hooks.changed(conversation);
    const result = await runCall(call, controller.signal);
    this.#running.delete(conversation.id);
    this.#answer(conversation, call, result, end);
    this.#hooks.changed(conversation);
    return !controller.signal.aborted;
  }

  #answer(conversation, call, result, after = path(conversation).at(-1)) {
    append(conversation, after.id, { role: "tool", call: call.id, name: call.name, ...result });
  }

  #tooMany(conversation, last) {
    const node = this.#newReply(conversation, last.id);
    Object.assign(node, { state: "error", error: t("the model has called tools in {0} replies in a row", MAX_ROUNDS) });
    this.#hooks.ended(conversation, node);
  }

  #newReply(conversation, parent) {
    const { model } = conversation.settings;
    return append(conversation, parent, { role: "assistant", content: "", reasoning: "", calls: [], state: "streaming", stats: null, model });
  }

  /** What the choice of passages needs of the server. */
  #passages(model, signal) {
    return {
      choosePassages: (choice) => this.#api.choosePassages(choice, signal),
      countTokens: (text) => this.#api.countTokens(text, model),
      contextTokens: () => this.#hooks.contextTokens(model),
    };
  }

  async #stream(conversation, node, nodes, fields = {}) {
    const controller = new AbortController();
    this.#running.set(conversation.id, controller);
    Object.assign(node, { state: "streaming", error: null, code: null, finish: null });
    const clock = new Clock(node.stats);
    const { settings } = conversation;
    this.#hooks.changed(conversation, node);
    try {
      await chooseExcerpts(nodes, this.#passages(settings.model, controller.signal));
      const body = { ...requestFields(settings), messages: toMessages(nodes, settings.system), ...fields };
      for await (const chunk of this.#api.chat(body, controller.signal)) {
        if (chunk.left_out) node.leftOut = chunk.left_out;
        else if (chunk.prompt_progress) this.#progress.set(node, chunk.prompt_progress);
        else apply(node, chunk, clock);
        this.#hooks.changed(conversation, node);
      }
      node.state = "done";
    } catch (error) {
      // Arguments of a call that is cut are not JSON.
      node.calls = [];
      Object.assign(node, error.name === "AbortError" ? { state: "stopped" } : { state: "error", error: error.message, code: error.code });
    }
    node.stats = clock.stats;
    this.#progress.delete(node);
    this.#running.delete(conversation.id);
    this.#hooks.ended(conversation, node);
  }
}

function apply(node, chunk, clock) {
  if (chunk.model) node.model = chunk.model;
  if (chunk.usage) clock.usage(chunk.usage);
  const { delta, finish_reason: finish } = chunk.choices?.[0] ?? {};
  if (finish) node.finish = finish;
  if (!delta) return;
  if (delta.content) node.content += delta.content;
  if (delta.reasoning_content) node.reasoning += delta.reasoning_content;
  for (const part of delta.tool_calls ?? []) applyCall(node.calls, part);
  if (delta.content || delta.reasoning_content || delta.tool_calls) clock.token(Boolean(delta.reasoning_content));
}

function applyCall(calls, { index, id, function: { name, arguments: text = "" } = {} }) {
  calls[index] ??= { id, name, arguments: "" };
  calls[index].arguments += text;
}

/** Times and token counts of a reply; those of a continued reply are added up. */
class Clock {
  #began = performance.now();
  #first = null;
  #lastReasoning = null;
  #usage = null;

  constructor(before) {
    this.before = before;
  }

  token(isReasoning) {
    const now = performance.now();
    this.#first ??= now;
    if (isReasoning) this.#lastReasoning = now;
  }

  usage(usage) {
    this.#usage = usage;
  }

  get stats() {
    const end = performance.now();
    const { prompt_tokens: prompt = null, completion_tokens: output = null } = this.#usage ?? {};
    return {
      firstMs: this.before?.firstMs ?? (this.#first && this.#first - this.#began),
      decodeMs: (this.before?.decodeMs ?? 0) + (this.#first ? end - this.#first : 0),
      reasoningMs: (this.before?.reasoningMs ?? 0) + (this.#lastReasoning ? this.#lastReasoning - this.#first : 0),
      cached: this.#usage?.prompt_tokens_details?.cached_tokens ?? 0,
      prompt,
      output: output === null ? null : output + (this.before?.output ?? 0),
      total: this.#usage?.total_tokens ?? null,
    };
  }
}
