// LangChain for Node, with its models of three APIs.

import assert from "node:assert/strict";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOllama, OllamaEmbeddings } from "@langchain/ollama";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { createAgent } from "langchain";
import { z } from "zod";
import { FUNCTIONS, LONG, MODEL, OPENAI, QUESTION, RESULT, SYSTEM, URL, checkCall, collect, run } from "./flow.mjs";

const settings = { maxRetries: 0, temperature: 0 };
const openai = { apiKey: "any", maxTokens: 200, configuration: { baseURL: OPENAI }, ...settings };
const MODELS = {
  "chat completions": (model) => new ChatOpenAI({ model, useResponsesApi: false, ...openai }),
  responses: (model) => new ChatOpenAI({ model, useResponsesApi: true, ...openai }),
  anthropic: (model) => new ChatAnthropic({ model, apiKey: "any", anthropicApiUrl: URL, maxTokens: 200, ...settings }),
  ollama: (model) => new ChatOllama({ model, baseUrl: URL, numPredict: 200, ...settings }),
};
const hello = [new SystemMessage(SYSTEM), new HumanMessage("Hello")];
const weather = tool(() => RESULT, {
  name: "get_weather",
  description: FUNCTIONS[0].description,
  schema: z.object({ location: z.string().describe("The location to get the weather for.") }),
});
const joined = (chunks) => chunks.reduce((message, chunk) => message.concat(chunk));

const flows = {
  "chat with a system message and usage": async (model) => {
    const message = await model.invoke(hello);
    assert.ok(message.text && message.usage_metadata.output_tokens > 0);
  },
  "streamed chat": async (model) => {
    const message = joined(await collect(await model.stream(hello)));
    assert.ok(message.text && message.usage_metadata.output_tokens > 0);
  },
  "tool call and result": async (model) => {
    const bound = model.bindTools([weather]);
    const message = await bound.invoke(QUESTION);
    const [call] = message.tool_calls;
    checkCall(call.name, call.args);
    const result = new ToolMessage({ content: RESULT, tool_call_id: call.id });
    assert.match((await bound.invoke([new HumanMessage(QUESTION), message, result])).text, /Paris/);
  },
  "streamed tool call": async (model) => {
    const [call] = joined(await collect(await model.bindTools([weather]).stream(QUESTION))).tool_calls;
    checkCall(call.name, call.args);
  },
  agent: async (model) => {
    const { messages } = await createAgent({ model, tools: [weather] }).invoke({ messages: [new HumanMessage(QUESTION)] });
    assert.match(messages.at(-1).text, /Paris/);
    assert.equal(messages.length, 4);
  },
  "structured output": async (model) => {
    const schema = z.object({ warm: z.boolean() });
    schema.parse(await model.withStructuredOutput(schema, { method: "jsonSchema" }).invoke(QUESTION));
  },
  errors: async (model, name) => {
    for (const failing of [MODELS[name]("none").invoke("Hello"), model.invoke(LONG)]) {
      const error = await failing.then(assert.fail, (error) => error);
      assert.match(error.message, /there is no model|prompt is too long/);
    }
  },
};

const all = {};
for (const [name, model] of Object.entries(MODELS)) {
  for (const [flow, check] of Object.entries(flows)) all[`${name}: ${flow}`] = () => check(model(MODEL), name);
}
all.embeddings = async () => {
  for (const model of [
    new OpenAIEmbeddings({ model: MODEL, apiKey: "any", configuration: { baseURL: OPENAI } }),
    new OllamaEmbeddings({ model: MODEL, baseUrl: URL }),
  ]) {
    assert.equal((await model.embedDocuments(["one", "two"])).length, 2);
  }
};
await run(all);
