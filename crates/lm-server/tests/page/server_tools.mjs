// Tools of the server: switched on, approved, run by the server, failing, and stopped.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  const [requests, calls] = [[], []];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  page.on("request", (request) => request.url().endsWith("/tools/call") && calls.push(request.postDataJSON()));
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByRole("switch", { name: "find_notes" }).check();
  await page.getByRole("switch", { name: "slow" }).check();
  assert.equal(await page.getByRole("switch", { name: "calculate" }).count(), 1, "the server's tool takes the place of the page's");
  await page.keyboard.press("Escape");

  await send(page, "Find apples.");
  const question = page.getByRole("group", { name: "Run find_notes?" });
  await question.waitFor();
  assert.equal(calls.length, 0, "nothing runs before it is approved");
  assert.deepEqual(requests[0].tools.map((tool) => tool.function.name), ["find_notes", "slow"]);
  await question.getByRole("button", { name: "Approve" }).click();
  await reply(page, "There are two.");
  assert.deepEqual(calls, [{ name: "find_notes", arguments: { query: "apples" } }]);
  assert.equal(requests[1].messages.at(-1).content, '{"found": "2 notes", "about": ["apples", "pears"]}', "spaced, as chat templates write it");

  await send(page, "Find nothing.");
  await page.getByRole("button", { name: "Always allow" }).click();
  await reply(page, "That failed.");
  assert.equal(await page.locator(".call").last().getAttribute("data-outcome"), "error");

  await send(page, "Wait.");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator('.call[data-outcome="error"]').nth(1).waitFor();
  await send(page, "Go on.");
  await reply(page, "Gone on.");
  assert.match(requests.at(-1).messages.at(-2).content, /stopped this call/);
});
