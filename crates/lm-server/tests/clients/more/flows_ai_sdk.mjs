// Vercel's AI SDK, with its providers of three APIs.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  ToolLoopAgent,
  embedMany,
  generateText,
  isStepCount,
  jsonSchema,
  Output,
  streamText,
  tool,
} from "ai";
import { z } from "zod";
import { FUNCTIONS, LONG, MODEL, OPENAI, QUESTION, RESULT, SYSTEM, checkAnswer, checkCall, collect, run } from "./flow.mjs";

const openai = createOpenAI({ baseURL: OPENAI, apiKey: "any" });
const compatible = createOpenAICompatible({
  name: "lm",
  baseURL: OPENAI,
  apiKey: "any",
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const PROVIDERS = {
  "openai, responses": (name) => openai.responses(name),
  "openai, chat": (name) => openai.chat(name),
  "openai-compatible": (name) => compatible(name),
  anthropic: createAnthropic({ baseURL: OPENAI, apiKey: "any" }),
};

const declared = (run) =>
  Object.fromEntries(
    FUNCTIONS.map(({ name, description, parameters }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters), ...(run && { execute: () => JSON.parse(RESULT) }) }),
    ]),
  );
const settings = { maxRetries: 0, temperature: 0, maxOutputTokens: 200 };
const colour = z.object({ name: z.string().max(20), warm: z.boolean() });
const warm = z.object({ name: z.enum(["red", "blue"]), warm: z.boolean() });

const flows = {
  chat: async (model) => {
    const { text, usage, finishReason } = await generateText({ model, system: SYSTEM, prompt: "Hello", ...settings });
    assert.ok(text);
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
    assert.equal(finishReason, "stop");
  },
  "streamed chat": async (model) => {
    const result = streamText({ model, system: SYSTEM, prompt: "Hello", ...settings });
    assert.ok((await collect(result.textStream)).join(""));
    assert.ok((await result.usage).outputTokens > 0);
    assert.equal(await result.finishReason, "stop");
  },
  "several turns": async (model) => {
    const first = await generateText({ model, prompt: "Hello", ...settings });
    const messages = [
      { role: "user", content: "Hello" },
      ...first.response.messages,
      { role: "user", content: "Thanks!" },
    ];
    assert.ok((await generateText({ model, messages, ...settings })).text);
  },
  "tool call": async (model) => {
    const { toolCalls, finishReason } = await generateText({ model, prompt: QUESTION, tools: declared(false), ...settings });
    assert.equal(toolCalls.length, 1);
    checkCall(toolCalls[0].toolName, toolCalls[0].input);
    assert.equal(finishReason, "tool-calls");
  },
  "streamed tool call": async (model) => {
    const result = streamText({ model, prompt: QUESTION, tools: declared(false), ...settings });
    const kinds = (await collect(result.fullStream)).map((part) => part.type);
    for (const kind of ["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call"]) assert.ok(kinds.includes(kind), kinds);
    const [call] = await result.toolCalls;
    checkCall(call.toolName, call.input);
  },
  "tools that are run": async (model) => {
    const { text, steps } = await generateText({
      model,
      prompt: QUESTION,
      tools: declared(true),
      stopWhen: isStepCount(3),
      ...settings,
    });
    assert.equal(steps.length, 2);
    assert.ok(text.includes("Paris"), text);
  },
  "streamed tools that are run": async (model) => {
    const result = streamText({ model, prompt: QUESTION, tools: declared(true), stopWhen: isStepCount(3), ...settings });
    assert.ok((await result.text).includes("Paris"));
    assert.equal((await result.steps).length, 2);
  },
  agent: async (model) => {
    const agent = new ToolLoopAgent({ model, instructions: SYSTEM, tools: declared(true), ...settings });
    const { text } = await agent.generate({ prompt: QUESTION });
    assert.ok(text);
  },
  "forced tools": async (model) => {
    for (const toolChoice of ["required", { type: "tool", toolName: "get_stock_price" }]) {
      const { toolCalls } = await generateText({ model, prompt: "Hello", tools: declared(false), toolChoice, ...settings });
      if (toolChoice.toolName) assert.equal(toolCalls[0].toolName, toolChoice.toolName);
      else assert.equal(toolCalls.length > 0, true);
    }
  },
  object: async (model, name) => {
    const schema = name === "anthropic" ? warm : colour;
    const { output } = await generateText({ model, prompt: QUESTION, output: Output.object({ schema }), ...settings });
    schema.parse(output);
  },
  "streamed object": async (model, name) => {
    const schema = name === "anthropic" ? warm : colour;
    const result = streamText({ model, prompt: QUESTION, output: Output.object({ schema }), ...settings });
    assert.ok((await collect(result.partialOutputStream)).length > 0);
    schema.parse(await result.output);
  },
  errors: async (model, name) => {
    const raised = async (model, prompt) =>
      await generateText({ model, prompt, ...settings }).then(
        () => assert.fail("no error"),
        (error) => error,
      );
    const unknown = await raised(PROVIDERS[name]("none"), "Hello");
    assert.ok(APICallError.isInstance(unknown), unknown);
    assert.equal(unknown.statusCode, 404);
    const long = await raised(model, LONG);
    assert.equal(long.statusCode, 400);
    assert.match(long.message, /prompt is too long/);
  },
};

const all = {};
for (const [name, provider] of Object.entries(PROVIDERS)) {
  for (const [flow, check] of Object.entries(flows)) all[`${name}: ${flow}`] = () => check(provider(MODEL), name);
}
all.embeddings = async () => {
  for (const model of [openai.embedding(MODEL), compatible.embeddingModel(MODEL)]) {
    assert.equal((await embedMany({ model, values: ["one", "two"] })).embeddings.length, 2);
  }
};
all.completion = async () => {
  for (const model of [openai.completion(MODEL), compatible.completionModel(MODEL)]) {
    assert.ok((await generateText({ model, prompt: "One, two,", maxOutputTokens: 5, maxRetries: 0 })).text);
  }
};
await run(all);
