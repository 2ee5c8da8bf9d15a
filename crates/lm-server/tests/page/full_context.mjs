// A conversation that fills the context: the oldest messages are left out, or a new one goes on from a summary.

import assert from "node:assert/strict";
import { open, reply, send, until, withPage } from "./browser.mjs";

const FULL = { error: { message: "the prompt has 5,000 tokens", type: "invalid_request_error", code: "context_length_exceeded" } };

await withPage(async (page, url, log) => {
  log.expected.push("status of 400");
  await open(page, url);
  const requests = [];
  // The server of the test has a large context.
  await page.route("**/v1/chat/completions", async (route) => {
    const body = route.request().postDataJSON();
    requests.push(body);
    if (body.messages.length > 2 && !body.truncation) return route.fulfill({ status: 400, json: FULL });
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), ...(body.truncation && { "x-messages-left-out": "2" }) } });
  });
  await send(page, "First");
  await reply(page, "Reply one");
  await send(page, "Second");
  await page.getByRole("alert").getByText("the prompt has 5,000 tokens").waitFor();
  await page.getByRole("button", { name: "Leave out the oldest messages" }).click();
  const shortened = await reply(page, "Reply two");
  assert.match(await shortened.locator(".stats").textContent(), /without the 2 oldest messages$/);
  assert.equal(requests.at(-1).truncation, "auto");

  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByLabel("Leave out the oldest messages").uncheck();
  await page.keyboard.press("Escape");
  await send(page, "Third");
  await page.getByRole("button", { name: "Go on from a summary" }).click();
  const field = page.getByRole("textbox", { name: "Message" });
  await until(async () => (await field.inputValue()).includes("Reply three"), "the summary");
  assert.equal(await field.inputValue(), "This is a summary of our conversation so far:\n\nReply three\n\nThird");
  const { messages, max_tokens, truncation } = requests.at(-1);
  assert.deepEqual([messages.length, truncation, messages.at(-2).content], [5, "auto", "Reply two"], "the question is not summarised");
  assert.ok(max_tokens <= 1024);
  await page.getByRole("button", { name: "Send" }).click();
  await reply(page, "Reply four");
  assert.equal(await page.locator(".message").count(), 2, "a new conversation");
});
