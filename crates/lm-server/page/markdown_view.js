// Elements of Markdown.

import { copyButton, el } from "./dom.js";
import { parseInline } from "./inline.js";
import { parseBlocks } from "./markdown.js";

const INLINE = { bold: "strong", italic: "em", strike: "del" };

/** An element that shows a growing text as Markdown; unchanged blocks keep their elements and the selection in them. */
export class MarkdownView {
  element = el("div", { class: "markdown" });
  #shown = [];
  #text = null;

  update(text) {
    if (text === this.#text) return;
    this.#text = text;
    const blocks = parseBlocks(text);
    let same = 0;
    while (same < blocks.length && isSame(blocks[same], this.#shown[same])) same += 1;
    while (this.element.childNodes.length > same) this.element.lastChild.remove();
    this.element.append(...blocks.slice(same).map(blockElement));
    this.#shown = blocks;
  }
}

const isSame = (block, shown) => shown !== undefined && block.kind === shown.kind && block.source === shown.source && block.open === shown.open;

function blockElement(block) {
  switch (block.kind) {
    case "heading":
      // The page has its own heading above them.
      return el(`h${Math.min(block.level + 1, 6)}`, {}, inlineElements(block.text));
    case "code":
      return codeElement(block);
    case "list":
      return el(block.start === null ? "ul" : "ol", { start: block.start }, block.items.map(itemElement));
    case "quote":
      return el("blockquote", {}, block.blocks.map(blockElement));
    case "table":
      return tableElement(block);
    case "rule":
      return el("hr");
    default:
      return el("p", {}, inlineElements(block.text));
  }
}

/** An item of one paragraph has no paragraph element: its lines are close together. */
function itemElement(blocks) {
  const [first, ...rest] = blocks;
  if (first?.kind !== "paragraph" || rest.some(({ kind }) => kind === "paragraph")) return el("li", {}, blocks.map(blockElement));
  const [, done, text] = /^(?:\[([ xX])\] )?([^]*)$/.exec(first.text);
  const box = done && el("input", { type: "checkbox", disabled: true, checked: done !== " ", "aria-label": done === " " ? "to do" : "done" });
  return el("li", { class: box && "task" }, box, inlineElements(text), rest.map(blockElement));
}

function codeElement({ language, text }) {
  const head = el("div", { class: "code-head" }, el("span", {}, language || "text"), copyButton("Copy code", () => text));
  return el("div", { class: "code" }, head, el("pre", { tabindex: "0" }, el("code", {}, text)));
}

function tableElement({ alignments, head, rows }) {
  const row = (tag, cells) => el("tr", {}, cells.map((cell, column) => el(tag, { class: `align-${alignments[column]}` }, inlineElements(cell))));
  const body = el("tbody", {}, rows.map((cells) => row("td", cells)));
  return el("div", { class: "table", tabindex: "0" }, el("table", {}, el("thead", {}, row("th", head)), body));
}

const inlineElements = (text) => parseInline(text).map(inlineElement);

function inlineElement(node) {
  if (typeof node === "string") return node;
  const children = () => node.children.map(inlineElement);
  if (node.kind === "code") return el("code", {}, node.text);
  if (node.kind === "break") return el("br");
  if (node.kind === "link") return el("a", { href: node.href, target: "_blank", rel: "noopener noreferrer" }, children());
  return el(INLINE[node.kind], {}, children());
}
