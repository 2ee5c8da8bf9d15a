// Replies without a browser: calls that need approval, are cut, follow one another without end, or are of a tool that is switched off.

import assert from "node:assert/strict";
import test from "node:test";

const load = (name) => import(new URL(`../../page/${name}.js`, import.meta.url));
const { Runner } = await load("runner");
const { defaults } = await load("settings");
const tree = await load("tree");

const call = (index, name, text) => ({ index, id: `id${index}`, function: { name, arguments: text } });
const SUM = call(0, "calculate", '{"expression": "6 * 7"}');
const WEATHER = call(1, "get_weather", '{"location": "Paris"}');

/** Runs a conversation with these deltas as replies, the last one is repeated; an error among them ends its reply, a usage is its last chunk. */
async function run(settings, ...replies) {
  const [requests, conversation] = [[], tree.newConversation({ ...defaults(), ...settings })];
  const api = {
    async *chat(body) {
      requests.push(body);
      if (requests.length > 20) throw new Error("too many requests");
      for (const delta of replies[Math.min(requests.length, replies.length) - 1]) {
        if (delta instanceof Error) throw delta;
        yield delta.usage ? { choices: [], ...delta } : { choices: [{ delta }] };
      }
    },
  };
  const runner = new Runner(api, { changed() {}, ended() {} });
  tree.append(conversation, null, { role: "user", content: "Hello" });
  await runner.advance(conversation);
  return { conversation, requests, runner, nodes: () => tree.path(conversation) };
}

test("a model that calls tools for ever is stopped", async () => {
  const { requests, nodes } = await run({ tools: ["calculate"], allowed: ["calculate"] }, [{ tool_calls: [SUM] }]);
  assert.equal(requests.length, 16);
  assert.match(nodes().at(-1).error, /called tools in 16 replies/);
});

test("progress of the prompt is known until the reply begins", async () => {
  const seen = [];
  const progress = { total: 9, cache: 0, processed: 4, time_ms: 2 };
  const api = {
    async *chat() {
      yield { choices: [{ delta: {} }], prompt_progress: progress };
      yield { choices: [{ delta: { content: "Well." } }] };
    },
  };
  const runner = new Runner(api, { changed: (_, node) => seen.push(node && runner.progress(node)), ended() {} });
  const conversation = tree.newConversation(defaults());
  tree.append(conversation, null, { role: "user", content: "Hello" });
  await runner.advance(conversation);
  assert.deepEqual(seen.filter(Boolean), [progress, progress]);
  assert.equal(runner.progress(tree.path(conversation).at(-1)), undefined);
  assert.equal("progress" in tree.path(conversation).at(-1), false, "it is not kept");
});

test("a call of a tool that is switched off is an error for the model", async () => {
  const { requests, nodes } = await run({ tools: ["calculate"], allowed: ["get_weather"] }, [{ tool_calls: [{ ...WEATHER, index: 0 }] }], [{ content: "Sorry." }]);
  assert.match(requests[1].messages.at(-1).content, /there is no tool `get_weather`/);
  assert.equal(nodes().at(-1).content, "Sorry.");
});

test("a reply that is cut keeps its text, and no call", async () => {
  for (const [name, state] of [["AbortError", "stopped"], ["Error", "error"]]) {
    const cut = Object.assign(new Error("cut"), { name });
    const { nodes } = await run({ tools: ["calculate"], allowed: ["calculate"] }, [{ content: "Well." }, { tool_calls: [SUM] }, cut]);
    const { content, calls, state: found } = nodes().at(-1);
    assert.deepEqual([content, calls, found], ["Well.", [], state]);
  }
});

test("all open calls are denied when the user continues", async () => {
  const { conversation, requests, runner, nodes } = await run({ tools: ["calculate", "get_weather"] }, [{ tool_calls: [SUM, WEATHER] }], [{ content: "Yes." }]);
  assert.equal(requests.length, 1, "nothing runs before it is approved");
  runner.denyOpen(conversation);
  assert.deepEqual(nodes().slice(2).map(({ call, outcome }) => [call, outcome]), [["id0", "denied"], ["id1", "denied"]]);
  await runner.advance(conversation);
  assert.deepEqual(requests[1].messages.map(({ role }) => role), ["user", "assistant", "tool", "tool"]);
});

test("a reply waits until each of its calls is decided", async () => {
  const { conversation, requests, runner, nodes } = await run({ tools: ["calculate", "get_weather"] }, [{ tool_calls: [SUM, WEATHER] }], [{ content: "42" }]);
  const [sum, weather] = nodes()[1].calls;
  await runner.decide(conversation, weather, "deny");
  assert.equal(requests.length, 1);
  await runner.decide(conversation, sum, "approve");
  assert.deepEqual(requests[1].messages.slice(2).map(({ content }) => content), ["the user denied this call", "42"]);
  assert.deepEqual([nodes().at(-1).content, conversation.settings.allowed], ["42", []]);
});

test("a continued reply has the tokens of all its requests", async () => {
  const usage = (output) => ({ usage: { prompt_tokens: 5, completion_tokens: output, total_tokens: 5 + output } });
  const { conversation, requests, runner, nodes } = await run({}, [{ content: "One, " }, usage(3)], [{ content: " two." }, usage(4)]);
  const node = nodes()[1];
  await runner.extend(conversation, node);
  assert.deepEqual([node.content, node.stats.output, node.stats.total], ["One, two.", 7, 9]);
  assert.deepEqual([requests[1].continue_final_message, requests[1].messages.at(-1)], [true, { role: "assistant", content: "One," }]);
});

test("a later request has the reasoning and the calls of earlier replies", async () => {
  const { requests } = await run({ tools: ["calculate"], allowed: ["calculate"] }, [{ reasoning_content: "Hm." }, { tool_calls: [SUM] }], [{ content: "42" }]);
  const { name, arguments: text } = SUM.function;
  const { reasoning_content: reasoning, tool_calls: calls } = requests[1].messages[1];
  assert.deepEqual([reasoning, calls], ["Hm.", [{ id: "id0", type: "function", function: { name, arguments: text } }]]);
  assert.deepEqual(requests[1].messages[2], { role: "tool", tool_call_id: "id0", name: "calculate", content: "42" });
});
