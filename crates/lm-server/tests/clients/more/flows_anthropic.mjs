// Anthropic's client for Node.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { FUNCTIONS, LONG, MODEL, QUESTION, RESULT, SYSTEM, URL, checkAnswer, checkCall, collect, run } from "./flow.mjs";

const client = new Anthropic({ baseURL: URL, apiKey: "any", maxRetries: 0 });
const tools = FUNCTIONS.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
const messages = [{ role: "user", content: QUESTION }];
const hello = [{ role: "user", content: "Hello" }];
const request = { model: MODEL, max_tokens: 200 };
const withResult = ({ content, stop_reason }) => {
  const [call] = content.filter((block) => block.type === "tool_use");
  assert.equal(stop_reason, "tool_use");
  checkCall(call.name, call.input);
  const result = { type: "tool_result", tool_use_id: call.id, content: RESULT };
  return [...messages, { role: "assistant", content }, { role: "user", content: [result] }];
};

await run({
  "chat with a system message and usage": async () => {
    const { content, usage, stop_reason } = await client.messages.create({ ...request, system: SYSTEM, messages: hello });
    assert.ok(content[0].text && usage.input_tokens > 0 && usage.output_tokens > 0);
    assert.equal(stop_reason, "end_turn");
  },
  "streamed chat": async () => {
    const stream = client.messages.stream({ ...request, messages: hello });
    const texts = [];
    stream.on("text", (text) => texts.push(text));
    assert.equal(await stream.finalText(), texts.join(""));
  },
  "raw stream": async () => {
    const events = await collect(await client.messages.create({ ...request, messages: hello, stream: true }));
    assert.equal(events.at(-1).type, "message_stop");
  },
  "tool call and result": async () => {
    const message = await client.messages.create({ ...request, messages, tools });
    const answer = await client.messages.create({ ...request, messages: withResult(message), tools });
    checkAnswer(answer.content[0].text);
  },
  "streamed tool call and result": async () => {
    const message = await client.messages.stream({ ...request, messages, tools }).finalMessage();
    const answer = client.messages.stream({ ...request, messages: withResult(message), tools });
    checkAnswer(await answer.finalText());
  },
  "forced tool": async () => {
    const tool_choice = { type: "tool", name: "get_stock_price" };
    const { content } = await client.messages.create({ ...request, messages: hello, tools, tool_choice });
    assert.equal(content.at(-1).name, "get_stock_price");
  },
  "tool runner": async () => {
    const [{ name, description, input_schema }] = tools;
    const tool = betaTool({ name, description, inputSchema: input_schema, run: () => RESULT });
    const message = await client.beta.messages.toolRunner({ ...request, messages, tools: [tool] });
    checkAnswer(message.content[0].text);
  },
  "streamed tool runner": async () => {
    const [{ name, description, input_schema }] = tools;
    const tool = betaTool({ name, description, inputSchema: input_schema, run: () => RESULT });
    const turns = await collect(client.beta.messages.toolRunner({ ...request, messages, tools: [tool], stream: true }));
    checkAnswer(await turns.at(-1).finalText());
  },
  "count of tokens": async () => {
    const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages, tools });
    assert.ok(input_tokens > 50);
  },
  models: async () => {
    assert.deepEqual((await collect(client.models.list())).map(({ id }) => id), [MODEL]);
    assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  },
  errors: async () => {
    await assert.rejects(client.messages.create({ ...request, model: "none", messages: hello }), Anthropic.NotFoundError);
    const long = client.messages.create({ ...request, messages: [{ role: "user", content: LONG }] });
    const error = await long.then(assert.fail, (error) => error);
    assert.ok(error instanceof Anthropic.BadRequestError && error.requestID, error);
    assert.match(error.message, /prompt is too long/);
  },
});
