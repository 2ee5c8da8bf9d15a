// Requests to the server of this page.

import { events, lines } from "./sse.js";
import { t } from "./text.js";

const KEY = "lm.key";

/** Error of the API, or of the connection to it (status 0). */
export class ApiError extends Error {
  constructor(status, message, code = null) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** Client of the server. `askKey` is called with a message when the server wants another key; it resolves to the key, or to null. */
export class Api {
  #askKey;
  #asking = null;

  constructor(askKey) {
    this.#askKey = askKey;
  }

  /** Fetches the models, `data`, and whether the server `downloads` others. */
  async models() {
    return (await this.#fetch("v1/models")).json();
  }

  /** Loads a model into memory, or unloads it once it is idle. */
  async loadModel(model, isLoad) {
    await this.#post("api/generate", { model, stream: false, ...(!isLoad && { keep_alive: 0 }) });
  }

  /** Downloads a model; yields `status`, `total` and `completed` bytes, or `error`. */
  async *pull(model) {
    const response = await this.#post("api/pull", { model });
    for await (const line of lines(response.body)) yield parsed(line);
  }

  /** Fetches the declarations of the server's tools. */
  async tools() {
    return (await (await this.#fetch("v1/tools")).json()).data;
  }

  /** Fetches the presets: `name` and `options` of each. */
  async presets() {
    return (await (await this.#fetch("page/presets")).json()).data;
  }

  /** Has the server run one of its tools. */
  async callTool(name, values, signal) {
    return (await this.#post("v1/tools/call", { name, arguments: values }, signal)).json();
  }

  /** Lists the kept conversations, or those that a search finds. */
  async listChats(parameters) {
    return (await this.#fetch(`v1/chats?${new URLSearchParams(parameters)}`)).json();
  }

  /** Fetches a kept conversation. */
  async readChat(id) {
    return (await this.#fetch(`v1/chats/${encodeURIComponent(id)}`)).json();
  }

  /** Changes or creates a kept conversation. */
  async changeChat(id, change, options = {}) {
    await this.#post(`v1/chats/${encodeURIComponent(id)}`, change, undefined, options);
  }

  /** Deletes a kept conversation. */
  async deleteChat(id) {
    await this.#fetch(`v1/chats/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  /** Counts the tokens of a text for a model; null where the server cannot. */
  async countTokens(content, model) {
    const answer = await this.#post("tokenize", { content, model: model || undefined, parse_special: false }).catch(() => null);
    return answer && (await answer.json()).count;
  }

  /** Has the server read the text of a file. */
  async readDocument(file) {
    return (await this.#fetch("page/document", { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file })).json();
  }

  /** Has the server choose passages of a text: `name`, `text`, `question`, `bytes` and, for further ones, `sent`. */
  async choosePassages(choice, signal) {
    return (await this.#post("page/passages", choice, signal)).json();
  }

  /** Has the server render the next piece of a text, which begins `at` UTF-16 units after the start of the stream. */
  async render(stream, at, text, done) {
    return (await this.#post("page/render", { stream, at, text: text.toWellFormed(), done })).json();
  }

  /** Yields the chunks of a streamed chat completion. */
  async *chat(body, signal) {
    const stream = { ...body, stream: true, stream_options: { include_usage: true }, return_progress: true };
    const response = await this.#post("v1/chat/completions", stream, signal);
    const leftOut = Number(response.headers.get("x-messages-left-out"));
    if (leftOut) yield { left_out: leftOut };
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const chunk = parsed(data);
      if (chunk.error) throw new ApiError(chunk.error.code ?? 500, chunk.error.message ?? t("the server ended the reply with an error"));
      yield chunk;
    }
    throw new ApiError(0, t("the connection ended before the reply was complete"));
  }

  #post(path, body, signal, options = {}) {
    return this.#fetch(path, { ...options, method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
  }

  async #fetch(path, init = {}) {
    for (;;) {
      const key = sessionStorage.getItem(KEY);
      const headers = { ...init.headers, ...(key && { authorization: `Bearer ${key}` }) };
      const response = await fetch(path, { ...init, headers }).catch((error) => {
        if (error.name === "AbortError") throw error;
        throw new ApiError(0, t("the server cannot be reached"));
      });
      if (response.ok) return response;
      const error = await errorOf(response);
      if (response.status !== 401) throw error;
      // Another request may have asked for the key in the meantime.
      if (sessionStorage.getItem(KEY) === key && !(await this.#newKey(key ? error.message : ""))) throw error;
    }
  }

  async #newKey(message) {
    this.#asking ??= this.#askKey(message).finally(() => (this.#asking = null));
    const key = await this.#asking;
    if (key) sessionStorage.setItem(KEY, key);
    return key;
  }
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new ApiError(0, t("the server sent an event that is not JSON"));
  }
}

async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const message = body?.error?.message ?? t("the server answered with status {0}", response.status);
  return new ApiError(response.status, message, body?.error?.code);
}
