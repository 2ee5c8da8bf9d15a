// Markdown inside a paragraph: one pass over the text, at most one open marker of each kind, so that the time is linear in its length.

const PUNCTUATION = /^[!-/:-@[-`{-~]$/;
const KINDS = { "**": "bold", __: "bold", "*": "italic", _: "italic", "~~": "strike" };
const WORD = /[\p{L}\p{N}_]/u;
/** Longest address of a link. */
const MAX_ADDRESS = 2000;

/** Parses a text to nodes: texts, and {kind, children} or {kind, text}; kinds are code, bold, italic, strike, link (with href) and break. */
export function parseInline(text) {
  return new Scanner(text).run();
}

class Scanner {
  #text;
  #at = 0;
  #plain = "";
  /** Open markers: the innermost is last; the first is the paragraph. */
  #open = [{ marker: null, children: [] }];
  /** Runs of backticks that are not in the rest of the text. */
  #absent = new Set();

  constructor(text) {
    this.#text = text;
  }

  run() {
    while (this.#at < this.#text.length) this.#step();
    while (this.#open.length > 1) this.#abandon();
    this.#flush();
    return this.#open[0].children;
  }

  #step() {
    const character = this.#text[this.#at];
    if (character === "\\") return this.#escape();
    if (character === "`") return this.#code();
    if (character === "\n") return this.#lineEnd();
    if (character === "[") return this.#openLink();
    if (character === "]") return this.#closeLink();
    if (character === "h" || character === "<") return this.#address();
    if ("*_~".includes(character)) return this.#emphasis(character);
    this.#take(1);
  }

  #take(length) {
    this.#plain += this.#text.slice(this.#at, this.#at + length);
    this.#at += length;
  }

  #flush() {
    if (this.#plain) this.#open.at(-1).children.push(this.#plain);
    this.#plain = "";
  }

  #add(node, length) {
    this.#flush();
    this.#open.at(-1).children.push(node);
    this.#at += length;
  }

  #escape() {
    if (PUNCTUATION.test(this.#text[this.#at + 1] ?? "")) this.#at += 1;
    this.#take(1);
  }

  #lineEnd() {
    const hard = /( {2,}|\\)$/.test(this.#plain.slice(-3));
    this.#plain = this.#plain.replace(/( {2,}|\\)$/, "");
    if (hard) return this.#add({ kind: "break" }, 1);
    this.#flush();
    this.#take(1);
  }

  #code() {
    const marker = /^`+/.exec(this.#text.slice(this.#at, this.#at + 20))[0];
    const start = this.#at + marker.length;
    let end = this.#absent.has(marker) ? -1 : this.#text.indexOf(marker, start);
    while (end >= 0 && this.#text[end + marker.length] === "`") {
      end = this.#text.indexOf(marker, this.#runEnd(end));
    }
    if (end < 0) {
      this.#absent.add(marker);
      return this.#take(marker.length);
    }
    const text = this.#text.slice(start, end).replaceAll("\n", " ");
    const padded = /^ .* $/s.test(text) && text.trim();
    this.#add({ kind: "code", text: padded ? text.slice(1, -1) : text }, end + marker.length - this.#at);
  }

  #runEnd(from) {
    let end = from;
    while (this.#text[end] === "`") end += 1;
    return end;
  }

  #emphasis(character) {
    // Three markers close the inner one first.
    const isThird = this.#text[this.#at + 2] === character && this.#open.at(-1).marker === character;
    const double = this.#text[this.#at + 1] === character && !isThird;
    const marker = double ? character + character : character;
    if (!KINDS[marker]) return this.#take(1);
    const before = this.#text[this.#at - 1] ?? " ";
    const after = this.#text[this.#at + marker.length] ?? " ";
    const inWord = character === "_" && WORD.test(before) && WORD.test(after);
    const index = this.#open.findIndex((open) => open.marker === marker);
    if (index > 0 && !/\s/.test(before) && !inWord) return this.#close(index, { kind: KINDS[marker] }, marker.length);
    if (index > 0 || /\s/.test(after) || inWord) return this.#take(marker.length);
    this.#push(marker);
  }

  #openLink() {
    const index = this.#open.findIndex((open) => open.marker === "[");
    if (index > 0) while (this.#open.length > index) this.#abandon();
    this.#push("[");
  }

  #closeLink() {
    const index = this.#open.findIndex((open) => open.marker === "[");
    const rest = index > 0 ? this.#text.slice(this.#at + 1, this.#at + MAX_ADDRESS) : "";
    const found = /^\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))*)>?(?:\s+"[^"\n]*")?\s*\)/.exec(rest);
    const href = found && safeAddress(found[1]);
    if (href) return this.#close(index, { kind: "link", href }, 1 + found[0].length);
    if (index > 0) while (this.#open.length > index) this.#abandon();
    this.#take(1);
  }

  #address() {
    const before = this.#text[this.#at - 1] ?? " ";
    const found = WORD.test(before) ? null : /^<?(https?:\/\/[^\s<>"`\\]+)>?/.exec(this.#text.slice(this.#at, this.#at + MAX_ADDRESS));
    if (!found || this.#open.some((open) => open.marker === "[")) return this.#take(1);
    const bracketed = found[0].startsWith("<");
    const text = bracketed ? found[1] : found[1].replace(/[*_~]*[.,:;!?'")\]]*[*_~]*$/, "");
    const href = safeAddress(text);
    if (!href) return this.#take(1);
    this.#add({ kind: "link", href, children: [text] }, bracketed ? found[0].length : text.length);
  }

  #push(marker) {
    this.#flush();
    this.#open.push({ marker, children: [] });
    this.#at += marker.length;
  }

  #close(index, node, length) {
    while (this.#open.length > index + 1) this.#abandon();
    this.#flush();
    const { children } = this.#open.pop();
    this.#add({ ...node, children }, length);
  }

  /** Makes the innermost open marker plain text. */
  #abandon() {
    this.#flush();
    const { marker, children } = this.#open.pop();
    const { children: outer } = this.#open.at(-1);
    for (const child of [marker, ...children]) outer.push(child);
  }
}

/** Returns the address if it is one of http or https, otherwise null. */
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
