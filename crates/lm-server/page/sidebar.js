// List of conversations: search, rename, delete, export.

import { byId, el, icon, iconButton, setChildren } from "./dom.js";
import { t } from "./text.js";

/** The list. `actions` are open, rename, remove and exportOne, each of a conversation. */
export class Sidebar {
  #actions;
  #conversations;
  #search = byId("search");
  #rows = new Map();
  #current = null;
  /** Conversations that the search has found; null without a search. */
  #found = null;

  constructor(conversations, actions) {
    this.#conversations = conversations;
    this.#actions = actions;
    this.#search.addEventListener("input", () => this.#find());
  }

  /** Shows the list; `current` is the id of the shown conversation. */
  render(current) {
    this.#current = current;
    const words = this.#search.value.trim();
    const found = this.#found?.map(({ id }) => this.#conversations.get(id)).filter(Boolean) ?? this.#conversations.list();
    const { more } = this.#conversations;
    const rows = found.map((conversation) => this.#row(conversation));
    if (more && !this.#found) rows.push(this.#more(more));
    setChildren(byId("conversations"), rows);
    const empty = byId("no-conversations");
    empty.hidden = found.length > 0;
    empty.textContent = words ? t("Nothing found") : t("No conversations yet");
    for (const id of this.#rows.keys()) if (!this.#conversations.get(id)) this.#rows.delete(id);
  }

  async #find() {
    const words = this.#search.value.trim();
    const found = words ? await this.#conversations.search(words) : null;
    if (words !== this.#search.value.trim()) return;
    this.#found = found;
    this.render(this.#current);
  }

  #more(number) {
    const show = async () => {
      await this.#conversations.showMore();
      this.render(this.#current);
    };
    return el("li", {}, el("button", { type: "button", class: "open", onclick: show }, t("Show more ({0})", number)));
  }

  #row(conversation) {
    const row = this.#rows.get(conversation.id) ?? this.#newRow(conversation);
    this.#rows.set(conversation.id, row);
    const title = conversation.title || t("New chat");
    if (row.title.textContent !== title) row.title.textContent = row.title.title = title;
    row.open.setAttribute("aria-current", conversation.id === this.#current ? "page" : "false");
    return row.element;
  }

  #newRow(conversation) {
    const { id } = conversation;
    const get = () => this.#conversations.get(id);
    const title = el("span", { class: "title" });
    const open = el("button", { type: "button", class: "open", onclick: () => this.#actions.open(get()) }, title);
    const buttons = el(
      "span",
      { class: "row-actions" },
      iconButton("edit", t("Rename conversation"), () => this.#rename(get(), row)),
      iconButton("download", t("Export conversation"), () => this.#actions.exportOne(get())),
      iconButton("trash", t("Delete conversation"), () => this.#confirmDelete(get(), row)),
    );
    const row = { title, open, element: el("li", {}, open, buttons) };
    return row;
  }

  #rename(conversation, row) {
    const input = el("input", { type: "text", "aria-label": t("Title of the conversation"), maxlength: "200" });
    input.value = conversation.title;
    let isOver = false;
    const end = (isKept) => {
      if (isOver) return;
      isOver = true;
      input.replaceWith(row.open);
      if (isKept && input.value.trim()) this.#actions.rename(conversation, input.value.trim());
      row.open.focus();
    };
    input.addEventListener("blur", () => end(true));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.stopPropagation();
      end(event.key === "Enter");
    });
    row.open.replaceWith(input);
    input.select();
  }

  #confirmDelete(conversation, row) {
    const close = () => question.remove();
    const yes = el("button", { type: "button", class: "button danger", onclick: () => this.#actions.remove(conversation) }, icon("trash"), t("Delete"));
    const no = el("button", { type: "button", class: "button", onclick: close }, t("Keep"));
    const question = el("span", { class: "row confirm", role: "group", "aria-label": t("Delete this conversation?") }, yes, no);
    row.element.querySelector(".confirm")?.remove();
    row.element.append(question);
    no.focus();
  }
}
