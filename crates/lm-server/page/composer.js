// The field for a new message.

import { byId } from "./dom.js";
import { MediaTray } from "./media.js";
import { remember, remembered } from "./remember.js";

/** The field, with its buttons to send and to stop. `actions` are send(text, media), stop(), failed(message), readDocument(file), countTokens(text), contextTokens() and toggleTools(), toggleThinking(). */
export class Composer {
  #area = byId("message");
  #send = byId("send");
  #stop = byId("stop");
  #isRunning = false;
  #media;

  constructor(actions) {
    this.actions = actions;
    this.#media = new MediaTray({ changed: () => this.#resize(), failed: actions.failed, readDocument: actions.readDocument, countTokens: actions.countTokens, contextTokens: actions.contextTokens });
    // What is typed survives a reload.
    this.#area.value = remembered("draft", "");
    this.#area.addEventListener("input", () => {
      remember("draft", this.#area.value);
      this.#resize();
    });
    this.#area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.#send.addEventListener("click", () => this.#submit());
    this.#stop.addEventListener("click", () => actions.stop());
    byId("tools-chip").addEventListener("click", () => actions.toggleTools());
    byId("thinking-chip").addEventListener("click", () => actions.toggleThinking());
  }

  /** Shows the state of the conversation. */
  update({ tools, thinking }, isRunning, { modalities, canThink }) {
    this.#media.enable(modalities);
    byId("thinking-chip").hidden = byId("thinking-field").hidden = byId("effort-field").hidden = !canThink;
    const hadFocus = [this.#send, this.#stop].includes(document.activeElement);
    this.#isRunning = isRunning;
    this.#stop.hidden = !isRunning;
    this.#send.hidden = isRunning;
    if (hadFocus && isRunning) this.#stop.focus();
    else if (hadFocus) this.focus();
    byId("tools-chip").setAttribute("aria-pressed", tools.length > 0);
    byId("tools-count").textContent = tools.length || "";
    byId("thinking-chip").setAttribute("aria-pressed", thinking);
    this.#resize();
  }

  /** Sets the text of the field. */
  fill(text) {
    this.#area.value = text;
    remember("draft", text);
    this.#resize();
    this.focus();
  }

  /** Moves the focus to the field; not on phones, where that opens a keyboard. */
  focus() {
    if (matchMedia("(hover: hover)").matches) this.#area.focus({ preventScroll: true });
  }

  #submit() {
    const text = this.#area.value;
    if (this.#isEmpty || this.#isRunning) return;
    this.#area.value = "";
    remember("draft", "");
    this.actions.send(text, this.#media.take());
  }

  get #isEmpty() {
    return !this.#area.value.trim() && this.#media.isEmpty;
  }

  #resize() {
    this.#send.disabled = this.#isEmpty;
    this.#area.style.height = "auto";
    this.#area.style.height = `${Math.min(this.#area.scrollHeight, window.innerHeight * 0.4)}px`;
  }
}
