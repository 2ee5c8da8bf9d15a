// Modules of the page without a browser: event streams, the calculator, the tools, conversations, files.

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import test from "node:test";

const load = (name) => import(new URL(`../../page/${name}.js`, import.meta.url));
const { EventParser } = await load("sse");
const { evaluate } = await load("calculator");
const { fillsContext, progressText, statsText } = await load("stats");
const { callError, runCall } = await load("tools");
const { checkedSettings, defaults, inherited, requestFields, withPreset } = await load("settings");
const { kindOf, mimeOf, titleOf, toPart } = await load("media");
const { chooseExcerpts, describe } = await load("passages");
const { fromMedium, readText, sizeText, toMedium } = await load("text_file");
const { translated } = await load("text");
const tree = await load("tree");
const { Chats } = await load("chats");
const { checkedConversation, parseFile } = await load("transfer");

test("an event stream parses the same wherever it is cut", () => {
  const text = ": comment\r\ndata: one\r\n\r\ndata:two\ndata: three\n\nevent: x\rdata: four\r\rdata: no end";
  const expected = ["one", "two\nthree", "four"];
  for (let size = 1; size <= text.length; size += 1) {
    const parser = new EventParser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(found, expected, `pieces of ${size}`);
  }
});

test("a reply that fills the context cannot continue", () => {
  for (const [total, contextTokens, expected] of [[2048, 2048, true], [2047, 2048, false], [2048, null, false], [null, 2048, false]]) {
    assert.equal(fillsContext({ stats: { total } }, contextTokens), expected, `${total} of ${contextTokens}`);
  }
  assert.equal(fillsContext({ stats: null }, 2048), false);
});

test("progress of a prompt says what is left, if that takes a second", () => {
  const progress = { total: 6000, cache: 1000, processed: 2000, time_ms: 3000 };
  assert.equal(progressText(progress), "Reading the prompt: 2,000 of 6,000 tokens, 12 s left");
  for (const none of [undefined, { ...progress, processed: 6000 }, { ...progress, processed: 1000 }, { ...progress, time_ms: 100 }]) assert.equal(progressText(none), "");
});

test("settings are fields of a request where they are valid", () => {
  const fields = (settings) => requestFields({ ...defaults(), ...settings });
  assert.deepEqual(fields({}), {});
  assert.deepEqual(fields({ effort: "high" }), { reasoning_effort: "high" });
  assert.deepEqual(fields({ effort: "high", thinking: false }), { reasoning_effort: "none" });
  const schema = { type: "object" };
  assert.deepEqual(fields({ texts: { stop: "a\n\nb", schema: JSON.stringify(schema) } }), {
    stop: ["a", "b"], response_format: { type: "json_schema", json_schema: { name: "reply", schema } },
  });
  assert.deepEqual(fields({ texts: { stop: " ", schema: "{" } }), {});
  const older = { ...defaults(), texts: undefined, effort: undefined };
  assert.deepEqual(requestFields(older), {});
  const { texts, effort } = checkedSettings({ texts: { stop: "x", schema: 5, other: "y" }, effort: "utmost" });
  assert.deepEqual([texts, effort], [{ stop: "x" }, ""]);
});

test("the calculator has the results and errors of the Rust tool", () => {
  for (const [text, value] of [["1 + 2 * 3", 7], ["2 ^ 3 ^ 2", 512], ["-2 ^ 2", -4], ["12 × 3 ÷ 4", 9], ["0.1 + 0.2", 0.3], ["10 / 3", 3.33333333333333], ["0 * -1", 0]]) {
    assert.equal(evaluate(text), value, text);
  }
  for (const [text, message] of [
    ["3 + ", "expected a number at character 5, found the end"],
    ["2 2", "expected an operator or the end at character 3, found `2`"],
    ["(1 + 2", "expected `)` at character 7, found the end"],
    ["1 / 0", "the result is not a finite number"],
    ["(".repeat(1000), "the expression is nested deeper than 64 levels"],
  ]) {
    assert.throws(() => evaluate(text), { message });
  }
});

test("calls of tools are checked and run", async () => {
  const call = (name, text) => ({ id: "1", name, arguments: text });
  assert.equal(callError(call("rm", "{}"), ["calculate"]), "there is no tool `rm`; there are: calculate");
  assert.equal(callError(call("calculate", "["), ["calculate"]), "the arguments are not a JSON object");
  assert.equal(callError(call("calculate", "{}"), ["calculate"]), "the argument `expression` is missing");
  assert.deepEqual(await runCall(call("calculate", '{"expression": 1}')), { outcome: "error", content: '{"error": "the argument `expression` is not a text"}' });
  assert.deepEqual((await runCall(call("get_stock_price", '{"stock_symbol": "googl"}'))).content, '{"tool_name": "get_stock_price", "stock_symbol": "googl", "price": 173.25, "currency": "USD"}');
});

test("a speed needs a time", () => {
  const text = (decodeMs) => statsText([{ stats: { firstMs: 100, decodeMs, output: 101 } }]);
  assert.equal(text(1000), "101 tokens · 100 tokens/s · first after 0.1 s");
  assert.equal(text(1), "101 tokens · first after 0.1 s");
});

test("branches of a conversation", () => {
  const conversation = tree.newConversation({});
  const user = tree.append(conversation, null, { role: "user", content: "Hi" });
  const one = tree.append(conversation, user.id, { role: "assistant", content: "1", calls: [] });
  const two = tree.append(conversation, user.id, { role: "assistant", content: "2", calls: [] });
  assert.deepEqual(tree.path(conversation), [user, two]);
  tree.select(conversation, one);
  assert.deepEqual(tree.toMessages(tree.path(conversation), " Be brief. ").map(({ content }) => content), [" Be brief. ", "Hi", "1"]);
  const empty = tree.append(conversation, one.id, { role: "assistant", content: "", calls: [] });
  assert.equal(tree.toMessages(tree.path(conversation), "").length, 2, "a reply without text is not sent");
  tree.remove(conversation, one);
  assert.equal(conversation.nodes[empty.id], undefined);
  assert.deepEqual(tree.path(conversation), [user, two]);
  tree.remove(conversation, user);
  assert.deepEqual([tree.path(conversation), Object.keys(conversation.nodes)], [[], []]);
});

test("approvals of calls are those of one conversation", () => {
  const settings = { system: "Be brief.", numbers: { temperature: 9, seed: 7 }, tools: ["calculate", "rm"], allowed: ["calculate"] };
  const { system, allowed } = inherited(settings);
  assert.deepEqual([system, allowed], ["Be brief.", []]);
  const text = JSON.stringify({ format: "lm-conversations", version: 1, conversations: [{ nodes: {}, settings }] });
  const [read] = parseFile(text);
  assert.deepEqual([read.settings.numbers, read.settings.tools, read.settings.allowed], [{ seed: 7 }, ["calculate"], []]);
});

test("files that are not exports are refused", () => {
  const file = (nodes) => JSON.stringify({ format: "lm-conversations", version: 1, conversations: [{ nodes }] });
  const user = (id, parent) => ({ id, parent, role: "user", content: "x" });
  for (const [text, message] of [
    ["{", /^the file is not JSON/],
    ["{}", /^the file is no export/],
    [file({ a: user("a", "b"), b: user("b", "a") }), /^conversations\[0\]\.nodes has a cycle$/],
    [file({ a: user("a", "z") }), /nodes\.a\.parent is not a message$/],
    [file({ a: { ...user("a", null), role: "root" } }), /role is not one of user, assistant, tool$/],
  ]) {
    assert.throws(() => parseFile(text), { message });
  }
  const cut = { ...user("b", "a"), role: "assistant", state: "streaming", calls: [{ id: "1", name: "f", arguments: "{" }] };
  const { b } = parseFile(file({ a: user("a", null), b: cut }))[0].nodes;
  assert.deepEqual([b.state, b.calls], ["closed", []]);
  assert.equal(parseFile(file({ a: user("a", null) }))[0].nodes.a.content, "x");
});

test("images and audio come before the text, and only data URLs are read from a file", () => {
  const [png, mp3] = ["data:image/png;base64,iVBO", "data:audio/mpeg;base64,SUQz"];
  const conversation = tree.newConversation({});
  tree.append(conversation, null, { role: "user", content: "What is it?", media: [png, mp3] });
  assert.equal(conversation.title, "What is it?");
  const [{ content }] = tree.toMessages(tree.path(conversation), "");
  const image = { type: "image_url", image_url: { url: png } };
  assert.deepEqual(content, [image, { type: "input_audio", input_audio: { data: "SUQz", format: "mp3" } }, { type: "text", text: "What is it?" }]);
  const untitled = tree.newConversation({});
  tree.append(untitled, null, { role: "user", content: "", media: [mp3] });
  assert.equal(untitled.title, "Audio");
  assert.deepEqual(tree.toMessages(tree.path(untitled), ""), [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "SUQz", format: "mp3" } }] }]);
  const file = (media) =>
    JSON.stringify({ format: "lm-conversations", version: 1, conversations: [{ nodes: { a: { id: "a", parent: null, role: "user", content: "", media } } }] });
  assert.deepEqual(parseFile(file([png, mp3]))[0].nodes.a.media, [png, mp3]);
  for (const other of [["https://example.com/a.png"], ["data:text/html;base64,aa"], ["data:image/png,raw"], [7], "x"]) {
    assert.throws(() => parseFile(file(other)), { message: /media is not an array of data URLs$/ });
  }
});

test("a file whose text is too long or cannot be read is named", async () => {
  const file = { name: "a.pdf" };
  assert.equal(await readText(file, async () => ({ text: "x" })), "x");
  await assert.rejects(readText(file, async () => ({ text: "é".repeat(1024 * 1024 + 1) })), { message: "a.pdf: its text has 2,097,154 bytes, and at most 2,097,152 are sent" });
  await assert.rejects(readText(file, async () => { throw new Error("it is damaged"); }), { message: "a.pdf: it is damaged" });
});

test("a file that does not fit the context says so", () => {
  assert.equal(sizeText(1500, 4096), "1,500 tokens");
  assert.equal(sizeText(5000, 4096), "5,000 tokens: the message will have passages that fit it");
  assert.equal(sizeText(5000, null), "5,000 tokens");
});

test("a file that is too long for a message is sent as passages, and later messages have further ones", async () => {
  const asked = [];
  const server = {
    contextTokens: async () => 1000,
    countTokens: async (text) => text.length / 2,
    async choosePassages(choice) {
      asked.push(choice);
      const chosen = choice.sent ? (choice.question === "More?" ? [7] : []) : [1, 4];
      return { chosen, of: 9, pages: [2, 3], prompt: `passages ${chosen}`, fits: true };
    },
  };
  const conversation = tree.newConversation({});
  const media = [toMedium("short.txt", "short"), toMedium("long.txt", "x".repeat(1200))];
  const first = tree.append(conversation, null, { role: "user", content: "What?", media });
  await chooseExcerpts(tree.path(conversation), server);
  // A share of 500 tokens for two files; the long one has 600.
  assert.deepEqual(asked, [{ name: "long.txt", text: "x".repeat(1200), question: "What?", bytes: 500 }]);
  assert.equal(describe(first.excerpts[0]), "long.txt: 2 of 9 passages, those that share words with the message; pages 2, 3");
  await chooseExcerpts(tree.path(conversation), server);
  assert.equal(asked.length, 1, "a message is given its passages once");
  for (const [question, count] of [["Thanks!", 0], ["More?", 1], ["More?", 1]]) {
    const { id } = tree.append(conversation, tree.path(conversation).at(-1).id, { role: "user", content: question, media: [] });
    await chooseExcerpts(tree.path(conversation), server);
    assert.equal(conversation.nodes[id].excerpts.length, count);
  }
  assert.deepEqual(asked.map(({ sent }) => sent), [undefined, [1, 4], [1, 4], [1, 4, 7]]);
  const texts = tree.toMessages(tree.path(conversation), "").map(({ content }) => (typeof content === "string" ? content : content.map(({ text }) => text)));
  assert.deepEqual(texts, [['File "short.txt":\n```\nshort\n```\n\n', "passages 1,4\n\n", "What?"], "Thanks!", ["passages 7\n\n", "More?"], ["passages 7\n\n", "More?"]]);
  const read = checkedConversation(structuredClone(conversation), "conversation");
  assert.deepEqual(tree.toMessages(tree.path(read), ""), tree.toMessages(tree.path(conversation), ""));
  const damaged = structuredClone(conversation);
  damaged.nodes[first.id].excerpts[0].file = 0.5;
  assert.deepEqual(checkedConversation(damaged, "c").nodes[first.id].excerpts, []);
});

test("a file that fits is sent whole", async () => {
  const server = { contextTokens: async () => 1000, countTokens: async () => 400, choosePassages: () => assert.fail("not asked") };
  for (const text of ["x".repeat(500), "x".repeat(2000)]) {
    const conversation = tree.newConversation({});
    const node = tree.append(conversation, null, { role: "user", content: "What?", media: [toMedium("a.txt", text)] });
    await chooseExcerpts(tree.path(conversation), server);
    assert.deepEqual(node.excerpts, []);
    assert.match(tree.toMessages([node], "")[0].content[0].text, /^File "a.txt"/);
  }
});

test("a preset replaces the settings that the page has", () => {
  const settings = { ...defaults(), system: "Mine.", numbers: { seed: 3 }, texts: { schema: "{}" } };
  assert.deepEqual(withPreset(settings, { "top-p": 0.5, temperature: 9, threads: 4, stop: "END", thinking: "off" }), { system: "Mine.", numbers: { top_p: 0.5 }, texts: { stop: "END" }, thinking: false });
  assert.deepEqual(withPreset(settings, { system: "Yours." }), { system: "Yours.", numbers: {}, texts: {}, thinking: true });
});

test("a text file is sent as text", () => {
  const medium = toMedium('no"tes, 1;base64,ä.md', "```\nx\n```");
  assert.equal(kindOf(medium), "text");
  assert.equal(titleOf(medium), 'no"tes, 1;base64,ä.md');
  assert.deepEqual(fromMedium(medium), { name: 'no"tes, 1;base64,ä.md', text: "```\nx\n```" });
  assert.deepEqual(toPart(medium), { type: "text", text: 'File "no\\"tes, 1;base64,ä.md":\n````\n```\nx\n```\n````\n\n' });
  for (const other of ["data:text/html;base64,aa", "data:text/plain;base64,aa", "data:text/plain;name=<b>;base64,aa"]) assert.equal(kindOf(other), undefined);
});

test("a file is what its bytes say", () => {
  const bytes = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));
  for (const [text, type] of [
    ["\x89PNG\r\n\x1a\n", "image/png"],
    ["\xff\xd8\xff\xe0", "image/jpeg"],
    ["RIFF\n\0\r\0WEBPVP8 ", "image/webp"],
    ["RIFF\x24\0\0\0WAVEfmt ", "audio/wav"],
    ["ID3\x04", "audio/mpeg"],
    ["\xff\xfb\x90", "audio/mpeg"],
    ["OggS", "audio/ogg"],
    ["Hello", undefined],
    ["", undefined],
  ]) {
    assert.equal(mimeOf(bytes(text)), type, text);
  }
});

test("what a server sends is checked", () => {
  const nodes = { a: { id: "a", parent: null, role: "user", content: "x", media: ["data:image/png;base64,AA=="], dropped: 2 }, b: { id: "b", parent: "a", role: "assistant", content: "y", calls: 3 } };
  assert.throws(() => checkedConversation({ nodes }, "conversation"), { message: "conversation.nodes.b.calls is not an array of calls" });
  delete nodes.b.calls;
  const read = checkedConversation({ id: "c", nodes, settings: { system: 3, allowed: ["delete_all"] } }, "conversation");
  assert.deepEqual([read.settings.allowed, read.settings.system, read.id], [[], "", undefined]);
  assert.deepEqual(tree.toMessages(tree.path(read), "")[0].content[1], { type: "text", text: "[2 images or audio clips, not kept]\n" });
});

/** A server in memory that records what is sent to it. */
function fakeServer() {
  const chats = new Map();
  const sent = [];
  return {
    chats,
    sent,
    async listChats({ search }) {
      const rows = [...chats.values()].map(({ id, title, updated }) => ({ id, title, updated }));
      return { kept: true, total: chats.size, data: search ? rows.filter(({ title }) => title.includes(search)) : rows };
    },
    readChat: async (id) => structuredClone(chats.get(id)),
    async changeChat(id, change) {
      sent.push(change);
      if (!change.create && !chats.has(id)) throw Object.assign(new Error("unknown"), { status: 404 });
      const { nodes = {}, selected = {}, settings = {}, title = "" } = chats.get(id) ?? {};
      for (const removed of change.removed ?? []) delete nodes[removed];
      const merged = { ...nodes, ...structuredClone(change.nodes ?? {}) };
      chats.set(id, { id, created: 1, updated: change.updated, title: change.title ?? title, settings: change.settings ?? settings, nodes: merged, selected: { ...selected, ...change.selected } });
    },
    async deleteChat(id) {
      if (!chats.delete(id)) throw Object.assign(new Error("unknown"), { status: 404 });
    },
  };
}

test("the server gets what has changed, once", async () => {
  globalThis.indexedDB = { open: () => { throw new Error("none"); } };
  const server = fakeServer();
  const chats = new Chats(server, () => {});
  await chats.open();
  const talk = tree.newConversation({ system: "", tools: [] });
  const question = tree.append(talk, null, { role: "user", content: "Hello" });
  await chats.save(talk);
  assert.deepEqual([chats.list().length, chats.more], [1, 0], "all are listed");
  assert.deepEqual([server.sent.length, server.sent[0].create, Object.keys(server.sent[0].nodes)], [1, true, [question.id]]);
  await chats.save(talk);
  assert.equal(server.sent.length, 1, "nothing has changed");
  const reply = tree.append(talk, question.id, { role: "assistant", content: "", reasoning: "", calls: [], state: "streaming", stats: null });
  for (const piece of ["a", "b", "c"]) {
    reply.content += piece;
    chats.save(talk);
  }
  await chats.save(talk);
  assert.deepEqual([server.sent.length, server.chats.get(talk.id).nodes[reply.id].content], [3, "abc"], "saves while one is under way are one");
  assert.equal(server.sent[2].nodes?.[question.id], undefined, "the question is not sent again");
  tree.remove(talk, reply);
  await chats.save(talk);
  assert.deepEqual(server.sent.at(-1).removed, [reply.id]);
  // Deleted by another program: what the page shows is written again.
  server.chats.clear();
  tree.append(talk, question.id, { role: "assistant", content: "again", reasoning: "", calls: [], state: "done", stats: null });
  await chats.save(talk);
  assert.deepEqual(Object.values(server.chats.get(talk.id).nodes).map(({ content }) => content), ["Hello", "again"]);
  await chats.delete(talk.id);
  await chats.save(talk);
  assert.deepEqual([server.chats.size, chats.list()], [0, []], "a reply that ends later does not bring it back");
  // A large conversation goes in parts below the limit of a body.
  const large = tree.newConversation({});
  let parent = null;
  for (let n = 0; n < 8; n += 1) parent = tree.append(large, parent, { role: "user", content: "x".repeat(1.5e6) }).id;
  const before = server.sent.length;
  await chats.save(large);
  assert.deepEqual([server.sent.length - before, Object.keys(server.chats.get(large.id).nodes).length], [4, 8]);
});

test("every text of the page has a translation, and every translation a text", async () => {
  const folder = new URL("../../page/", import.meta.url);
  const { GERMAN } = await load("german");
  const used = new Set();
  for (const name of await readdir(folder)) {
    const source = await readFile(new URL(name, folder), "utf8");
    if (name.endsWith(".js") && name !== "text.js") for (const text of texts(source)) used.add(text);
    if (name === "index.html") for (const text of htmlTexts(source)) used.add(text);
  }
  const names = new Set(Object.keys(GERMAN));
  assert.deepEqual([[...used].filter((text) => !names.has(text)), [...names].filter((text) => !used.has(text))], [[], []]);
  const places = (text) => (text.match(/\{\d\}/g) ?? []).toSorted().join();
  for (const [text, german] of Object.entries(GERMAN)) assert.equal(places(german), places(text), text);
  assert.equal(translated("Send", "de"), "Senden");
  assert.equal(translated("Send", "fr"), "Send");
});

/** Texts of calls t("…", …), also of t(condition ? "…" : "…"). */
function texts(source) {
  const literal = /"((?:[^"\\]|\\.)*)"|'([^']*)'/y;
  const found = [];
  for (const { index } of source.matchAll(/\bt\(/g)) {
    let at = index + 2;
    const condition = /[^"'(,)]*(?:===? "[a-z]+" )?\? /y;
    condition.lastIndex = at;
    const isChoice = condition.exec(source);
    if (isChoice) at += isChoice[0].length;
    literal.lastIndex = at;
    for (let match = literal.exec(source); match; match = isChoice && source.startsWith(" : ", literal.lastIndex) ? next(literal, source) : null) found.push(match[1] ?? match[2]);
  }
  return found;
}

function next(literal, source) {
  literal.lastIndex += 3;
  return literal.exec(source);
}

/** Texts of index.html but those of suggestions, which are sent as they are, and names. */
function htmlTexts(source) {
  const markup = source.replace(/<svg class="sprite"[^]*?<\/svg>\n\n/, "").replace(/(<button[^>]*data-text[^>]*><b>[^<]*<\/b>)<span>[^<]*/g, "$1").replace(/<title>.*/, "");
  const parts = [...markup.matchAll(/>([^<]*)</g), ...markup.matchAll(/ (?:title|aria-label|placeholder|alt)="([^"]+)"/g)].map(([, text]) => text.trim());
  return parts.filter((text) => text && text !== "lm");
}
