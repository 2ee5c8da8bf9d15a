// Conversations of the server, which are those of `lm chat`, too; of the browser if the server keeps none.

import { Conversations } from "./storage.js";
import { t } from "./text.js";
import { checkedConversation } from "./transfer.js";

/** Number of conversations that the list grows by. */
const PAGE = 200;
/** Largest part of a change that is sent at once, in characters: the server takes bodies of 16 MiB. */
const PART = 4 * 1024 * 1024;

/** Conversations by id. Listed ones have a title and times; `load` gives the messages. */
export class Chats {
  #api;
  #failed;
  #browser;
  #isKept = false;
  #total = 0;
  /** Rows of the list, by id. */
  #rows = new Map();
  /** Rows that a search has found, by id. */
  #found = new Map();
  /** Conversations with their messages, by id. */
  #loaded = new Map();
  /** Parts of conversations that the server has, by id: see `written`. */
  #sent = new Map();
  #writes = new Map();
  #deleted = new Set();

  /** `failed` is called with a message when conversations cannot be kept. */
  constructor(api, failed) {
    this.#api = api;
    this.#failed = failed;
    this.#browser = new Conversations(failed);
  }

  /** Lists the conversations; those of earlier visits that only the browser has move to the server. */
  async open() {
    await this.#browser.open();
    await this.#list(0).catch((error) => {
      if (error.status !== 401) this.#failed(t("the conversations of the server cannot be listed: {0}", error.message));
    });
    if (!this.#isKept) return;
    const old = this.#browser.list();
    for (const conversation of old) {
      if (await this.#write(conversation, true)) await this.#browser.delete(conversation.id);
    }
    if (old.length) await this.#list(0).catch(({ message }) => this.#failed(message));
  }

  /** True if the server keeps the conversations. */
  get isKept() {
    return this.#isKept;
  }

  /** Number of conversations that are not listed. */
  get more() {
    return this.#isKept ? Math.max(0, this.#total - new Set([...this.#rows.keys(), ...this.#loaded.keys()]).size) : 0;
  }

  /** A conversation, or its row of the list. */
  get(id) {
    return this.#loaded.get(id) ?? this.#browser.get(id) ?? this.#rows.get(id) ?? this.#found.get(id);
  }

  /** All listed conversations, last changed first. */
  list() {
    const ids = new Set([...this.#rows.keys(), ...this.#loaded.keys(), ...this.#browser.list().map(({ id }) => id)]);
    return [...ids].map((id) => this.get(id)).sort((a, b) => b.updated - a.updated);
  }

  /** Lists further conversations. */
  async showMore() {
    await this.#list(this.#rows.size).catch((error) => this.#failed(error.message));
  }

  /** Conversations with all of these words in a message or in the title, last changed first. */
  async search(words) {
    if (!this.#isKept) return this.list().filter((conversation) => matches(conversation, words.toLowerCase()));
    const { data } = await this.#api.listChats({ search: words, limit: PAGE }).catch((error) => {
      this.#failed(error.message);
      return { data: [] };
    });
    this.#found = new Map(data.map((row) => [row.id, row]));
    return data.map(({ id }) => this.get(id));
  }

  /** The conversation with its messages. */
  async load(id) {
    const known = this.#loaded.get(id) ?? this.#browser.get(id);
    if (known) return known;
    const conversation = { ...checkedConversation(await this.#api.readChat(id), "conversation"), id };
    this.#loaded.set(id, conversation);
    this.#sent.set(id, written(conversation));
    return conversation;
  }

  /** All conversations with their messages. */
  async all() {
    while (this.more > 0) {
      const before = this.#rows.size;
      await this.showMore();
      if (this.#rows.size === before) break;
    }
    const all = [];
    for (const { id } of this.list()) all.push(await this.load(id));
    return all;
  }

  /** Lists again; returns the ids of loaded conversations that another program has changed, which are then to be loaded again. */
  async refresh(isRunning) {
    if (!this.#isKept || this.#writes.size) return [];
    await this.#list(0).catch(() => {});
    const isChanged = (id) => this.#rows.get(id)?.updated > this.#loaded.get(id).updated;
    const changed = [...this.#loaded.keys()].filter((id) => isChanged(id) && !isRunning({ id }));
    for (const id of changed) this.#loaded.delete(id);
    return changed;
  }

  /** Saves a conversation, unless it has been deleted: a reply may end after that. `isLast`: the page is being closed. */
  async save(conversation, isLast = false) {
    const { id } = conversation;
    if (this.#deleted.has(id)) return;
    if (!this.#isKept) return this.#browser.save(conversation);
    if (!this.#loaded.has(id)) this.#total += this.#rows.has(id) ? 0 : 1;
    this.#loaded.set(id, conversation);
    if (isLast) await this.#write(conversation, !this.#sent.has(id), { keepalive: true });
    else await this.#queue(conversation);
  }

  async delete(id) {
    this.#deleted.add(id);
    this.#total -= this.#isKept ? 1 : 0;
    for (const map of [this.#rows, this.#found, this.#loaded, this.#sent]) map.delete(id);
    if (this.#browser.get(id) || !this.#isKept) await this.#browser.delete(id);
    if (!this.#isKept) return;
    await this.#api.deleteChat(id).catch((error) => {
      if (error.status !== 404) this.#failed(t("the conversation is not deleted: {0}", error.message));
    });
  }

  async #list(offset) {
    const { kept, total, data } = await this.#api.listChats({ limit: PAGE, offset });
    this.#isKept = kept;
    // Those whose deletion is under way are counted by the server.
    this.#total = total - data.filter(({ id }) => this.#deleted.has(id)).length;
    if (!offset) this.#rows.clear();
    for (const row of data) if (!this.#deleted.has(row.id)) this.#rows.set(row.id, row);
  }

  /** Writes a conversation after the write that is under way; what changes meanwhile is written once. */
  #queue(conversation) {
    const running = this.#writes.get(conversation.id);
    if (running) {
      running.isAgain = true;
      return running.done;
    }
    const write = { isAgain: true };
    write.done = (async () => {
      while (write.isAgain) {
        write.isAgain = false;
        if (!this.#deleted.has(conversation.id)) await this.#write(conversation, !this.#sent.has(conversation.id));
      }
      this.#writes.delete(conversation.id);
    })();
    this.#writes.set(conversation.id, write);
    return write.done;
  }

  /** Sends what the server does not have; returns false if that fails. */
  async #write(conversation, isNew, options = {}) {
    const { id } = conversation;
    const now = written(conversation);
    const changes = changesOf(conversation, now, this.#sent.get(id), isNew);
    try {
      for (const change of changes) await this.#api.changeChat(id, change, options);
      this.#sent.set(id, now);
      return true;
    } catch (error) {
      // Another program has deleted it, or a branch of it: what this page shows is written as a whole.
      if (!isNew && (error.status === 404 || error.status === 400)) {
        this.#sent.delete(id);
        return this.#write(conversation, true, options);
      }
      this.#failed(t("the conversation is not saved: {0}", error.message));
      return false;
    }
  }
}

/** A short text that differs for each state of a message: messages only grow. */
const stateOf = ({ content, excerpts, reasoning, calls, state, finish, error, outcome, stats }) =>
  [content.length, excerpts?.length, reasoning?.length, JSON.stringify(calls)?.length, state, finish, error, outcome, Boolean(stats)].join("|");

/** What is written of a conversation. */
function written({ title, settings, selected, nodes }) {
  const states = Object.values(nodes).map((node) => [node.id, stateOf(node)]);
  return { title, settings: JSON.stringify(settings), selected: { ...selected }, states: new Map(states) };
}

/** Changes that lead from what the server has to the conversation, in parts. */
function changesOf(conversation, now, before, isNew) {
  const { title, created, updated, settings, selected, nodes } = conversation;
  const base = { updated };
  if (isNew) Object.assign(base, { create: true, created });
  if (now.title !== before?.title) base.title = title;
  if (now.settings !== before?.settings) base.settings = settings;
  const removed = [...(before?.states.keys() ?? [])].filter((id) => !now.states.has(id));
  if (removed.length) base.removed = removed;
  const parts = [base];
  let length = 0;
  for (const [id, state] of now.states) {
    if (before?.states.get(id) === state) continue;
    const size = JSON.stringify(nodes[id]).length;
    if (length && length + size > PART) {
      parts.push({ updated });
      length = 0;
    }
    length += size;
    (parts.at(-1).nodes ??= {})[id] = nodes[id];
  }
  const chosen = Object.entries(selected).filter(([parent, child]) => before?.selected[parent] !== child);
  if (chosen.length) parts.at(-1).selected = Object.fromEntries(chosen);
  return parts.length > 1 || isNew || Object.keys(base).length > 1 ? parts : [];
}

function matches({ title, nodes }, words) {
  return title.toLowerCase().includes(words) || Object.values(nodes).some(({ content }) => content.toLowerCase().includes(words));
}
