// Calls of tools: approved, denied, always allowed, and waiting over a reload.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  const requests = [];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  await page.getByRole("button", { name: "Tools" }).click();

  await send(page, "How is the weather in Paris?");
  const call = page.locator(".call").last();
  const question = page.getByRole("group", { name: "Run get_weather?" });
  await question.waitFor();
  assert.deepEqual(JSON.parse(await call.locator(".call-text").first().textContent()), { location: "Paris" });
  assert.equal(requests.length, 1, "nothing runs before it is approved");
  assert.deepEqual(requests[0].tools.map((tool) => tool.function.name), ["get_weather", "get_stock_price", "current_time", "calculate"]);
  await page.reload();
  await question.getByRole("button", { name: "Approve" }).click();
  await reply(page, "It is sunny.");
  assert.equal(JSON.parse(await call.locator(".result").textContent()).temperature, 72);
  const [, , result] = requests[1].messages;
  assert.equal(result.role, "tool");
  assert.equal(result.tool_call_id, requests[1].messages[1].tool_calls[0].id);
  assert.equal(JSON.parse(result.content).condition, "Sunny");

  await send(page, "And now?");
  await page.getByRole("button", { name: "Deny" }).click();
  await reply(page, "Then I do not know.");
  assert.equal(requests.at(-1).messages.at(-1).content, "the user denied this call");

  await send(page, "What is 6 * 7?");
  await page.getByRole("button", { name: "Always allow" }).click();
  await reply(page, "It is 42 and 43.");
  const sums = requests.at(-1).messages.filter(({ role, name }) => role === "tool" && name === "calculate");
  assert.deepEqual(sums.map(({ content }) => content), ["42", "43"], "the second call runs without a question");

  await send(page, "Divide by zero.");
  await reply(page, "That is impossible.");
  assert.equal(JSON.parse(requests.at(-1).messages.at(-1).content).error, "the result is not a finite number");
});
