// Conversations in the browser's database.

import { t } from "./text.js";
import { settle } from "./tree.js";

const [DATABASE, STORE] = ["lm", "conversations"];

/** Conversations by id. If the browser has no database for this page, they last as long as the page. */
export class Conversations {
  #database = null;
  #all = new Map();
  #deleted = new Set();
  #failed;

  /** `failed` is called with a message when conversations cannot be kept. */
  constructor(failed) {
    this.#failed = failed;
  }

  /** Reads the conversations of earlier visits. */
  async open() {
    try {
      this.#database = await opened();
      const found = await promised(this.#store("readonly").getAll());
      for (const conversation of found) this.#all.set(conversation.id, settle(conversation));
    } catch (error) {
      this.#failed(t("this browser does not keep conversations: {0}", error.message));
    }
  }

  get(id) {
    return this.#all.get(id);
  }

  /** All conversations, last changed first. */
  list() {
    return [...this.#all.values()].sort((a, b) => b.updated - a.updated);
  }

  /** Saves a conversation, unless it has been deleted: a reply may end after that. */
  async save(conversation) {
    if (this.#deleted.has(conversation.id)) return;
    this.#all.set(conversation.id, conversation);
    await this.#write((store) => store.put(conversation));
  }

  async delete(id) {
    this.#all.delete(id);
    this.#deleted.add(id);
    await this.#write((store) => store.delete(id));
  }

  async #write(change) {
    if (!this.#database) return;
    try {
      const store = this.#store("readwrite");
      change(store);
      await committed(store.transaction);
    } catch (error) {
      this.#failed(t("the conversation is not saved: {0}", error.message));
    }
  }

  #store(mode) {
    return this.#database.transaction(STORE, mode).objectStore(STORE);
  }
}

function opened() {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
  return promised(request);
}

/** Commits without waiting for the requests of the transaction: it would be lost with a page that is closed before they are done. */
function committed(transaction) {
  transaction.commit();
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
