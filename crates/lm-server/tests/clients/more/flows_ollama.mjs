// Ollama's client for Node.

import assert from "node:assert/strict";
import { Ollama } from "ollama";
import { COLOUR, FUNCTIONS, LONG, MODEL, QUESTION, RESULT, SYSTEM, URL, checkAnswer, checkCall, collect, run } from "./flow.mjs";

const client = new Ollama({ host: URL });
const tools = FUNCTIONS.map((declared) => ({ type: "function", function: declared }));
const messages = [{ role: "user", content: QUESTION }];
const hello = [
  { role: "system", content: SYSTEM },
  { role: "user", content: "Hello" },
];
const model = MODEL;
const check = ({ tool_calls: [call] }) => checkCall(call.function.name, call.function.arguments);

await run({
  "chat with a system message and usage": async () => {
    const { message, done_reason, prompt_eval_count, eval_count } = await client.chat({ model, messages: hello });
    assert.ok(message.content && prompt_eval_count > 0 && eval_count > 0);
    assert.equal(done_reason, "stop");
  },
  "streamed chat": async () => {
    const parts = await collect(await client.chat({ model, messages: hello, stream: true }));
    assert.ok(parts.map(({ message }) => message.content).join("") && parts.at(-1).done);
  },
  "a stream that is aborted": async () => {
    const stream = await client.chat({ model, messages: hello, stream: true });
    stream.abort();
    await assert.rejects(collect(stream), { name: "AbortError" });
  },
  "tool call and result": async () => {
    const { message } = await client.chat({ model, messages, tools });
    check(message);
    const result = { role: "tool", content: RESULT, tool_name: "get_weather" };
    checkAnswer((await client.chat({ model, messages: [...messages, message, result], tools })).message.content);
  },
  "streamed tool call": async () => {
    const parts = await collect(await client.chat({ model, messages, tools, stream: true }));
    check(parts.map(({ message }) => message).find(({ tool_calls }) => tool_calls));
  },
  format: async () => {
    const { message } = await client.chat({ model, messages, format: COLOUR });
    assert.deepEqual(Object.keys(JSON.parse(message.content)), ["name", "warm"]);
  },
  generate: async () => {
    assert.ok((await client.generate({ model, prompt: "Hello", system: SYSTEM })).response);
    const parts = await collect(await client.generate({ model, prompt: "Hello", stream: true }));
    assert.ok(parts.at(-1).done);
  },
  embeddings: async () => {
    assert.equal((await client.embed({ model, input: ["one", "two"] })).embeddings.length, 2);
    assert.ok((await client.embeddings({ model, prompt: "one" })).embedding.length > 0);
  },
  models: async () => {
    assert.match((await client.list()).models[0].name, /^pocket/);
    assert.ok((await client.show({ model })).capabilities.includes("tools"));
    assert.equal((await client.ps()).models.length, 1);
    assert.equal((await client.pull({ model })).status, "success");
    assert.ok((await client.version()).version);
  },
  errors: async () => {
    await assert.rejects(client.chat({ model: "none", messages: hello }), { status_code: 404 });
    const long = client.chat({ model, messages: [{ role: "user", content: LONG }] });
    await assert.rejects(long, { status_code: 400, message: /prompt is too long/ });
  },
});
