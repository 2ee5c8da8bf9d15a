// Conversations in files.

import { kindOf } from "./media.js";
import { checkedExcerpts } from "./passages.js";
import { checkedSettings } from "./settings.js";
import { newId } from "./tree.js";

const FORMAT = "lm-conversations";
/** Largest file that is read. */
const MAX_BYTES = 64 * 1024 * 1024;

const ROLES = ["user", "assistant", "tool"];

/** Offers conversations as a file. */
export function exportFile(conversations, name) {
  const text = JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 1);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Reads the conversations of a file; throws an error that describes the fault. Each gets a new id, so existing ones are kept. */
export async function importFile(file) {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} has ${file.size} bytes, at most ${MAX_BYTES} are read`);
  return parseFile(await file.text());
}

/** Reads the text of a file. */
export function parseFile(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the file is not JSON: ${error.message}`);
  }
  if (value?.format !== FORMAT || value.version !== 1) throw new Error(`the file is no export of this page: "format" is not "${FORMAT}", version 1`);
  if (!Array.isArray(value.conversations)) throw new Error('"conversations" is not an array');
  return value.conversations.map((conversation, index) => ({ ...checkedConversation(conversation, `conversations[${index}]`), id: newId("c") }));
}

/** Returns what is valid in a conversation from a file or a server, without its id; throws an error that describes the fault. */
export function checkedConversation(value, at) {
  const { title, created, updated, settings, nodes, selected } = value ?? {};
  if (typeof nodes !== "object" || nodes === null) throw new Error(`${at}.nodes is not an object`);
  const checkedNodes = Object.entries(nodes).map(([id, node]) => [id, checkedNode(node, id, nodes, `${at}.nodes.${id}`)]);
  const time = (value) => (Number.isFinite(value) ? value : Date.now());
  const known = Object.entries(selected ?? {}).filter(([, child]) => Object.hasOwn(nodes, child));
  return {
    title: typeof title === "string" ? title.slice(0, 200) : "",
    created: time(created),
    updated: time(updated),
    settings: checkedSettings(settings),
    nodes: Object.fromEntries(acyclic(checkedNodes, at)),
    selected: Object.fromEntries(known.filter(([parent, child]) => (nodes[child].parent ?? "") === parent)),
  };
}

function checkedNode(node, id, nodes, at) {
  const { parent = null, role, content } = node ?? {};
  if (node?.id !== id) throw new Error(`${at}.id is not "${id}"`);
  if (parent !== null && !Object.hasOwn(nodes, parent)) throw new Error(`${at}.parent is not a message`);
  if (!ROLES.includes(role)) throw new Error(`${at}.role is not one of ${ROLES.join(", ")}`);
  if (typeof content !== "string") throw new Error(`${at}.content is not a text`);
  const base = { id, parent, role, content };
  if (role === "tool") return { ...base, call: String(node.call), name: String(node.name), outcome: String(node.outcome), ...parts(node) };
  return { ...base, ...(role === "user" ? question(node, at) : reply(node, at)) };
}

/** Images and audio of a result; `json` says that its text was a JSON value. */
const parts = ({ parts, json }) => ({ ...(Array.isArray(parts) && { parts }), ...(json === true && { json }) });

function question(node, at) {
  const checked = media(node, at);
  const excerpts = checkedExcerpts(node.excerpts, checked);
  return { media: checked, ...(node.dropped > 0 && { dropped: node.dropped }), ...(excerpts && { excerpts }) };
}

function media({ media = [] }, at) {
  if (!Array.isArray(media) || !media.every(kindOf)) throw new Error(`${at}.media is not an array of data URLs`);
  return media;
}

function reply({ reasoning = "", calls = [], state, error = null, code = null, finish = null, leftOut, model = "", stats }, at) {
  if (typeof reasoning !== "string") throw new Error(`${at}.reasoning is not a text`);
  const isCall = (call) => ["id", "name", "arguments"].every((key) => typeof call?.[key] === "string");
  if (!Array.isArray(calls) || !calls.every(isCall)) throw new Error(`${at}.calls is not an array of calls`);
  const numbers = Object.entries(stats ?? {}).filter(([, value]) => Number.isFinite(value));
  return {
    reasoning,
    calls: (state === "done" ? calls : []).map(({ id, name, arguments: text }) => ({ id, name, arguments: text })),
    state: ["done", "stopped", "error"].includes(state) ? state : "closed",
    error: typeof error === "string" ? error : null,
    code: typeof code === "string" ? code : null,
    ...(Number.isInteger(leftOut) && leftOut > 0 && { leftOut }),
    finish: typeof finish === "string" ? finish : null,
    model: typeof model === "string" ? model : "",
    stats: numbers.length ? Object.fromEntries(numbers) : null,
  };
}

/** Refuses messages that are not reached from the start: a cycle would never end. */
function acyclic(entries, at) {
  const children = new Map();
  for (const [id, { parent }] of entries) children.set(parent, [...(children.get(parent) ?? []), id]);
  const reached = [...(children.get(null) ?? [])];
  for (const id of reached) reached.push(...(children.get(id) ?? []));
  if (reached.length !== entries.length) throw new Error(`${at}.nodes has a cycle`);
  return entries;
}
