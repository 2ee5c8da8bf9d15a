// OpenAI's Agents SDK for Node, with its models of both APIs.

import assert from "node:assert/strict";
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { z } from "zod";
import { FUNCTIONS, LONG, MODEL, OPENAI, QUESTION, RESULT, SYSTEM, collect, run } from "./flow.mjs";

const weather = tool({
  name: "get_weather",
  description: FUNCTIONS[0].description,
  parameters: z.object({ location: z.string().describe("The location to get the weather for.") }),
  execute: () => RESULT,
});
const runner = (useResponses) =>
  new Runner({
    modelProvider: new OpenAIProvider({ baseURL: OPENAI, apiKey: "any", useResponses }),
    tracingDisabled: true,
  });
const agent = (options) =>
  new Agent({ name: "assistant", model: MODEL, modelSettings: { temperature: 0, maxTokens: 200 }, ...options });

const flows = {
  "chat with instructions": async (runner) => {
    const result = await runner.run(agent({ instructions: SYSTEM }), "Hello");
    assert.ok(result.finalOutput);
    assert.ok(result.rawResponses[0].usage.outputTokens > 0);
  },
  "streamed chat": async (runner) => {
    const result = await runner.run(agent(), "Hello", { stream: true });
    const text = (await collect(result.toTextStream())).join("");
    await result.completed;
    assert.equal(text, result.finalOutput);
  },
  "agent with tools": async (runner) => {
    const result = await runner.run(agent({ tools: [weather] }), QUESTION);
    assert.match(result.finalOutput, /Paris/);
    assert.deepEqual(
      result.newItems.map(({ type }) => type),
      ["tool_call_item", "tool_call_output_item", "message_output_item"],
    );
  },
  "streamed agent with tools": async (runner) => {
    const result = await runner.run(agent({ tools: [weather] }), QUESTION, { stream: true });
    await collect(result);
    assert.match(result.finalOutput, /Paris/);
  },
  "output type": async (runner) => {
    const outputType = z.object({ name: z.string().max(20), warm: z.boolean() });
    const { finalOutput } = await runner.run(agent({ outputType }), "Hello");
    outputType.parse(finalOutput);
  },
  "several turns": async (runner) => {
    const assistant = agent({ tools: [weather] });
    const { history } = await runner.run(assistant, QUESTION);
    assert.ok((await runner.run(assistant, [...history, { role: "user", content: "Thanks!" }])).finalOutput);
  },
  errors: async (runner) => {
    await assert.rejects(runner.run(agent({ model: "none" }), "Hello"), { status: 404 });
    await assert.rejects(runner.run(agent(), LONG), { status: 400, code: "context_length_exceeded" });
  },
};

const all = {};
for (const [name, responses] of [["responses", true], ["chat completions", false]]) {
  for (const [flow, check] of Object.entries(flows)) all[`${name}: ${flow}`] = () => check(runner(responses));
}
await run(all);
