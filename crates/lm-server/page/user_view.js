// A message of the user.

import { BranchSwitch } from "./branch_switch.js";
import { copyButton, el, iconButton, setChildren } from "./dom.js";
import { mediumElement } from "./media.js";
import { describe } from "./passages.js";
import { t } from "./text.js";

/** Shows a message; its text can be edited, which begins a branch. */
export class UserView {
  #node = null;
  #actions;
  #text = el("div", { class: "bubble" });
  #media = el("div", { class: "media" });
  #excerpts = el("div", { class: "excerpts" });
  #shown;
  #branches;
  #edit;
  #delete;

  constructor(actions) {
    this.#actions = actions;
    this.#branches = new BranchSwitch((node) => actions.select(node));
    this.#edit = iconButton("edit", t("Edit message"), () => this.#startEdit());
    this.#delete = iconButton("trash", t("Delete message and all that follow"), () => actions.remove(this.#node));
    const copy = copyButton(t("Copy message"), () => this.#node.content);
    this.footer = el("div", { class: "actions" }, this.#branches.element, copy, this.#edit, this.#delete);
    this.element = el("article", { class: "message user", "aria-label": t("You") }, this.#media, this.#excerpts, this.#text, this.footer);
  }

  update([node], context) {
    if (this.#node !== node || this.#text.textContent !== node.content) this.#text.textContent = node.content;
    if (this.#node !== node) setChildren(this.#media, (node.media ?? []).map(mediumElement));
    if (this.#shown !== node.excerpts) setChildren(this.#excerpts, (node.excerpts ?? []).map(excerptElement));
    this.#shown = node.excerpts;
    this.#text.hidden = !node.content;
    this.#node = node;
    this.#edit.disabled = this.#delete.disabled = context.isRunning;
    this.#branches.update(node, context);
  }

  #startEdit() {
    const area = el("textarea", { class: "edit", "aria-label": t("Message"), rows: "3" });
    area.value = this.#node.content;
    const close = () => {
      form.replaceWith(this.#text);
      this.footer.hidden = false;
      this.#edit.focus();
    };
    const send = () => {
      if (!area.value.trim() && !this.#node.media?.length) return;
      close();
      this.#actions.edit(this.#node, area.value);
    };
    const cancel = el("button", { type: "button", class: "button", onclick: close }, t("Cancel"));
    const buttons = el("div", { class: "row end" }, cancel, el("button", { type: "button", class: "button primary", onclick: send }, t("Send")));
    const form = el("div", { class: "edit-form" }, area, buttons);
    area.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.#text.replaceWith(form);
    this.footer.hidden = true;
    area.focus();
  }
}

/** The passages of a file that the model was given, folded. */
const excerptElement = (excerpt) =>
  el("details", { class: "file" }, el("summary", {}, el("span", {}, describe(excerpt))), el("pre", { tabindex: "0" }, excerpt.prompt));
