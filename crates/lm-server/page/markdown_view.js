// Markdown: the server renders it to sanitised HTML, a block at a time (api.js: render).

import { copyButton, el, setSanitised } from "./dom.js";
import { t } from "./text.js";
import { newId } from "./tree.js";

/** Renderings of complete texts, for conversations that are shown again. */
const finished = new Map();
const MOST_FINISHED = 300;

/** An element that shows a growing text as Markdown; complete blocks keep their elements and the selection in them. */
export class MarkdownView {
  element = el("div", { class: "markdown" });
  #api;
  #blocks = new Blocks(this.element);
  /** The text that is to be shown, and whether it is complete. */
  #text = "";
  #isDone = false;
  /** The text that the server has. */
  #sent = "";
  #stream = null;
  #isRunning = false;

  /** `api` renders, see api.js. */
  constructor(api) {
    this.#api = api;
  }

  update(text, isDone) {
    if (text === this.#text && isDone === this.#isDone) return;
    this.#text = text;
    this.#isDone = isDone;
    if (isDone && finished.has(text)) return this.#show(finished.get(text));
    if (this.element.childNodes.length === 0) this.#blocks.showPlain(text);
    if (!this.#isRunning) this.#run();
  }

  #show(pieces) {
    this.#sent = this.#text;
    this.#stream = null;
    this.#blocks.clear();
    this.#blocks.add(pieces, []);
  }

  async #run() {
    this.#isRunning = true;
    this.element.dataset.rendering = "";
    // A stream that was begun for an unfinished text has an end to send, even without more text.
    while (this.#sent !== this.#text || (this.#isDone && this.#stream)) {
      const [text, isDone] = [this.#text, this.#isDone];
      const goesOn = this.#stream && text.startsWith(this.#sent);
      if (!goesOn) this.#stream = newStream();
      const at = goesOn ? this.#sent.length : 0;
      const answer = await this.#api.render(this.#stream.name, at, text.slice(at), isDone).catch((error) => error);
      if (this.#sent === this.#text && !this.#stream) break;
      if (answer instanceof Error) {
        // The server has dropped the stream: once more from the beginning.
        if (at > 0 && answer.code === "stream_restart") this.#stream = null;
        else {
          this.#stream = null;
          this.#sent = this.#text;
          this.#blocks.showPlain(this.#text);
        }
        continue;
      }
      if (at === 0) this.#blocks.clear();
      this.#blocks.add(answer.pieces, answer.open);
      this.#stream?.pieces.push(...answer.pieces);
      this.#sent = text;
      if (isDone) this.#finish(text);
    }
    this.#isRunning = false;
    delete this.element.dataset.rendering;
  }

  #finish(text) {
    if (finished.size >= MOST_FINISHED) finished.delete(finished.keys().next().value);
    finished.set(text, this.#stream.pieces);
    this.#stream = null;
  }
}

/** Name of a stream of text to render. */
const newStream = () => ({ name: newId("s"), pieces: [] });

/** Elements of the pieces of a text: complete ones, then those that may change. */
class Blocks {
  #root;
  /** Element `code` of the code block that is not complete. */
  #code = null;
  /** Elements of the last, unfinished pieces. */
  #open = [];

  constructor(root) {
    this.#root = root;
  }

  clear() {
    this.#root.replaceChildren();
    this.#code = null;
    this.#open = [];
  }

  /** Shows a text that is not rendered. */
  showPlain(text) {
    this.clear();
    this.#root.append(el("p", { class: "plain" }, text));
  }

  add(pieces, open) {
    for (const element of this.#open) element.remove();
    this.#code = this.#append(pieces, this.#code, null);
    this.#open = [];
    this.#append(open, this.#code, this.#open);
  }

  /** Appends pieces; returns the code block that is open then. New elements are added to `list`. */
  #append(pieces, code, list) {
    for (const [kind, text] of pieces) {
      if (kind === "code") {
        code = codeBlock(text);
        this.#root.append(code.closest(".code"));
        list?.push(code.closest(".code"));
      } else if (kind === "lines") {
        const lines = el("span", {});
        setSanitised(lines, text);
        code.append(lines);
        list?.push(lines);
      } else if (kind === "html") {
        const block = el("div", { class: "block" });
        setSanitised(block, text);
        complete(block);
        this.#root.append(block);
        list?.push(block);
      } else code = null;
    }
    return code;
  }
}

/** Element `code` of a new code block. */
function codeBlock(language) {
  const code = el("code", {});
  const block = el("div", { class: "code" }, el("div", { class: "code-head" }, el("span", {}, language || "text")), el("pre", {}, code));
  complete(block);
  return code;
}

/** Adds what HTML of the server lacks: buttons, and keys for scrolling. */
function complete(block) {
  const heads = block.matches(".code") ? [block.firstChild] : block.querySelectorAll(".code-head");
  for (const head of heads) {
    const pre = head.nextSibling;
    head.append(copyButton(t("Copy code"), () => pre.textContent.replace(/\n$/, "")));
    pre.tabIndex = 0;
  }
  for (const table of block.querySelectorAll(".table")) table.tabIndex = 0;
}
