// Conversations: a tree of messages, in which each parent has a selected child.
//
// A message is {id, parent, role, content} and, of a user: media (data URLs of images, audio and text files), excerpts (passages.js); of the assistant: reasoning, calls, state, stats, error, model; of a tool:
// call (the id of the answered call), name, outcome.

import { titleOf as mediumTitle, toPart } from "./media.js";

/** Key of the selected child of the root. */
const ROOT = "";

/** Creates an id. `crypto.randomUUID` is missing on unencrypted addresses. */
export function newId(prefix) {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Creates a conversation without messages. */
export function newConversation(settings) {
  const now = Date.now();
  return { id: newId("c"), title: "", created: now, updated: now, settings, nodes: {}, selected: {} };
}

/** Adds a message after `parent` (null: at the start), and selects it. */
export function append(conversation, parent, fields) {
  const node = { id: newId("m"), parent, ...fields };
  conversation.nodes[node.id] = node;
  conversation.selected[parent ?? ROOT] = node.id;
  conversation.updated = Date.now();
  if (!conversation.title && node.role === "user") conversation.title = titleOf(node.content) || mediumTitle(node.media?.[0]);
  return node;
}

function titleOf(text) {
  const line = text.trim().split("\n")[0];
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

/** Messages with this parent, oldest first. */
export const children = (conversation, parent) => Object.values(conversation.nodes).filter((node) => node.parent === parent);

/** The message and its alternatives: those with the same parent. */
export const siblings = (conversation, node) => children(conversation, node.parent);

/** Selected messages from the start to the end. */
export function path(conversation) {
  const lastChild = new Map();
  for (const node of Object.values(conversation.nodes)) lastChild.set(node.parent, node);
  const nodes = [];
  for (let parent = null; lastChild.has(parent); parent = nodes.at(-1).id) {
    nodes.push(conversation.nodes[conversation.selected[parent ?? ROOT]] ?? lastChild.get(parent));
  }
  return nodes;
}

/** Selects another branch. */
export function select(conversation, node) {
  conversation.selected[node.parent ?? ROOT] = node.id;
}

/** Removes a message and all that follow it. */
export function remove(conversation, node) {
  const removed = [node];
  for (const { id } of removed) removed.push(...children(conversation, id));
  for (const { id } of removed) {
    delete conversation.nodes[id];
    delete conversation.selected[id];
  }
  const key = node.parent ?? ROOT;
  if (conversation.selected[key] === node.id) delete conversation.selected[key];
  conversation.updated = Date.now();
}

/** Closes replies that an earlier visit of the page left unfinished: the arguments of their calls may be cut. */
export function settle(conversation) {
  for (const node of Object.values(conversation.nodes)) {
    if (node.state === "streaming") Object.assign(node, { state: "closed", calls: [] });
  }
  return conversation;
}

/** Calls at the end of a path that have no result yet. */
export function openCalls(nodes) {
  const answered = new Set();
  for (const node of nodes.toReversed()) {
    if (node.role === "tool") answered.add(node.call);
    else return (node.calls ?? []).filter((call) => !answered.has(call.id));
  }
  return [];
}

/** Messages of a path as the API takes them. */
export function toMessages(nodes, system) {
  const messages = nodes.flatMap((node) => {
    if (node.role === "user") return [{ role: "user", content: userContent(node) }];
    if (node.role === "tool") return [{ role: "tool", tool_call_id: node.call, name: node.name, content: node.parts ?? node.content }];
    return node.content || node.calls.length ? [assistant(node)] : [];
  });
  return system.trim() ? [{ role: "system", content: system }, ...messages] : messages;
}

/** Images and audio come before the text, as templates expect. */
function userContent({ content, media = [], dropped = 0, excerpts = [] }) {
  const toText = ({ prompt }) => ({ type: "text", text: `${prompt}\n\n` });
  const further = excerpts.filter(({ file }) => typeof file !== "number").map(toText);
  if (!media.length && !dropped && !further.length) return content;
  const own = new Map(excerpts.map((excerpt) => [excerpt.file, excerpt]));
  const parts = [...further, ...media.map((medium, index) => (own.has(index) ? toText(own.get(index)) : toPart(medium)))];
  if (dropped) parts.push({ type: "text", text: `[${dropped} images or audio clips, not kept]\n` });
  return content ? [...parts, { type: "text", text: content }] : parts;
}

function assistant({ content, reasoning, calls }) {
  const message = { role: "assistant", content: content || null };
  if (reasoning) message.reasoning_content = reasoning;
  if (calls.length) message.tool_calls = calls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } }));
  return message;
}
