// Markdown: text to blocks. Blocks are data; markdown_view.js makes elements of them.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( +)(.*)|)$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
/** Deepest nesting of lists and quotes; deeper ones are paragraphs. */
const MAX_DEPTH = 8;
/** Length from which a line is only text: nobody writes such a heading, item or table. */
const MAX_LINE = 5000;

/**
 * Parses a text to blocks. Each has a `kind` and the `source` that it is made of: heading (level, text), code (language, text, open), list (start or null,
 * items of blocks), quote (blocks), table (alignments, head, rows), rule, paragraph (text).
 */
export function parseBlocks(text, depth = 0) {
  const lines = text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const { block, next } = blockAt(lines, at, depth);
    blocks.push({ ...block, source: lines.slice(at, next).join("\n") });
    at = next;
  }
  return blocks;
}

function blockAt(lines, at, depth) {
  const line = lines[at];
  if (line.length > MAX_LINE) return { block: { kind: "paragraph", text: line }, next: at + 1 };
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return { block: { kind: "heading", level: heading[1].length, text: heading[2] ?? "" }, next: at + 1 };
  if (RULE.test(line)) return { block: { kind: "rule" }, next: at + 1 };
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

function code(lines, at, [, marker, info]) {
  const ends = (line) => line.trimStart().startsWith(marker) && line.trim().replaceAll(marker[0], "") === "";
  let next = at + 1;
  while (next < lines.length && !ends(lines[next])) next += 1;
  const open = next === lines.length;
  const text = lines.slice(at + 1, next).join("\n");
  return { block: { kind: "code", language: info.trim().split(/\s/)[0], text, open }, next: open ? next : next + 1 };
}

function quote(lines, at, depth) {
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) next += 1;
  const inner = lines.slice(at, next).map((line) => line.replace(QUOTE, ""));
  return { block: { kind: "quote", blocks: parseBlocks(inner.join("\n"), depth + 1) }, next };
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const items = [];
  let next = at;
  for (let item; next < lines.length && (item = itemAt(lines[next], ordered)); ) {
    const end = itemEnd(lines, next, item);
    const inner = [item[4] ?? "", ...lines.slice(next + 1, end).map((line) => line.replace(indentOf(item), ""))];
    items.push(parseBlocks(inner.join("\n"), depth + 1));
    next = end;
  }
  return { block: { kind: "list", start: ordered ? parseInt(first[2], 10) : null, items }, next };
}

function itemAt(line, ordered) {
  const item = line.length > MAX_LINE || RULE.test(line) ? null : ITEM.exec(line);
  return item && /\d/.test(item[2]) === ordered ? item : null;
}

/** Width of an item's marker: lines of the item that are indented at least as far belong to it. */
const indentWidth = ([, before, marker, after]) => before.length + marker.length + Math.min((after ?? " ").length, 4);
const indentOf = (item) => new RegExp(`^ {0,${indentWidth(item)}}`);

function itemEnd(lines, start, item) {
  // Two columns are enough for the content: models indent less than the rules ask for.
  const inside = new RegExp(`^ {${Math.min(indentWidth(item), item[1].length + 2)}}`);
  let end = start + 1;
  for (let blank = false; end < lines.length; end += 1) {
    if (lines[end].trim() === "") blank = true;
    else if (inside.test(lines[end])) blank = false;
    else if (blank || ITEM.test(lines[end]) || interrupts(lines[end])) break;
  }
  return end;
}

const cells = (line) => line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function isTable(lines, at) {
  const rule = lines[at + 1];
  if (!rule || rule.length > MAX_LINE || !lines[at].includes("|") || !TABLE_RULE.test(rule)) return false;
  return cells(lines[at]).length === cells(rule).length;
}

function table(lines, at) {
  const head = cells(lines[at]);
  const alignments = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left"));
  const rows = [];
  let next = at + 2;
  for (; next < lines.length && lines[next].includes("|") && lines[next].length <= MAX_LINE; next += 1) {
    const row = cells(lines[next]);
    rows.push(head.map((_, column) => row[column] ?? ""));
  }
  return { block: { kind: "table", alignments, head, rows }, next };
}

function paragraph(lines, at, depth) {
  let next = at + 1;
  const goesOn = (line) => line.trim() !== "" && !interrupts(line) && (depth >= MAX_DEPTH || !/^ {0,3}([-*+]|1[.)]) /.test(line));
  while (next < lines.length && goesOn(lines[next]) && !isTable(lines, next)) next += 1;
  return { block: { kind: "paragraph", text: lines.slice(at, next).map((line) => line.trimStart()).join("\n") }, next };
}

const interrupts = (line) => line.length > MAX_LINE || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
