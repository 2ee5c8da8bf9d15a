// Sends, formats, fails and tries again, regenerates, edits, switches branches, reloads, and moves conversations to a file and back.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkAccess, open, reply, send, until, withPage } from "./browser.mjs";

await withPage(async (page, url, log) => {
  await open(page, url);
  await checkAccess(page, "the welcome");
  await formatsAReply(page);
  await failsInPlace(page, log);
  await branches(page);
  await page.reload();
  await reply(page, "Reply four");
  assert.equal(await page.locator(".message.user .branches").last().textContent(), "2/2", "a reload keeps branches");
  await listOfConversations(page);
  await files(page);
});

async function formatsAReply(page) {
  await send(page, "First\nquestion");
  const first = await reply(page, "Reply one");
  assert.equal(await first.locator("strong").textContent(), "bold");
  assert.equal(await first.locator("pre code").textContent(), "let x = 1 < 2;\n");
  assert.deepEqual(await first.locator("li").allTextContents(), ["apple", "pear"]);
  assert.deepEqual(await first.locator("td").allTextContents(), ["1", "2"]);
  const link = first.locator("a");
  assert.deepEqual([await link.getAttribute("href"), await link.getAttribute("rel")], ["https://example.com", "noopener noreferrer"]);
  assert.match(await first.locator(".stats").textContent(), /^\d+ tokens( · [\d.]+ tokens\/s)? · first after [\d.]+ s$/);
  assert.match(await page.locator("#context-text").textContent(), /^[\d,]+ of [\d,]+ tokens$/);
  assert.match(await page.locator("#announcer").textContent(), /^Reply complete\. /);
  await first.getByRole("button", { name: "Copy code" }).click();
}

async function failsInPlace(page, log) {
  log.expected.push("net::ERR_FAILED");
  await page.route("**/v1/chat/completions", (route) => route.abort());
  await send(page, "Second question");
  await page.getByRole("alert").filter({ hasText: "the server cannot be reached" }).waitFor();
  await checkAccess(page, "an error");
  await page.unroute("**/v1/chat/completions");
  await page.getByRole("button", { name: "Try again" }).click();
  await reply(page, "Reply two");
  assert.equal(await page.locator(".problem.failed:visible").count(), 0);
}

async function branches(page) {
  await page.getByRole("button", { name: "Regenerate" }).last().click();
  await reply(page, "Reply three");
  const turn = page.locator(".message.assistant").last();
  assert.equal(await turn.locator(".branches").textContent(), "2/2");
  await turn.getByRole("button", { name: "Previous branch" }).click();
  await reply(page, "Reply two");

  await page.locator(".message.user").last().hover();
  await page.getByRole("button", { name: "Edit message" }).last().click();
  await checkAccess(page, "an edit");
  await page.locator("textarea.edit").fill("Second question, edited");
  await page.keyboard.press("Enter");
  await reply(page, "Reply four");
  const user = page.locator(".message.user").last();
  assert.equal(await user.locator(".bubble").textContent(), "Second question, edited");
  await user.getByRole("button", { name: "Previous branch" }).click();
  await reply(page, "Reply two");
  await page.locator(".message.user").last().getByRole("button", { name: "Next branch" }).click();
  await reply(page, "Reply four");
}

async function listOfConversations(page) {
  await page.keyboard.press("Control+Shift+O");
  await page.getByRole("heading", { name: "How can I help?" }).waitFor();
  await send(page, "Another subject");
  await reply(page, "Reply five");
  const titles = () => page.locator("#conversations .title").allTextContents();
  assert.deepEqual(await titles(), ["Another subject", "First"]);
  const listed = (expected) => until(async () => (await titles()).join("|") === expected.join("|"), `the list is ${expected}`);
  await page.getByRole("searchbox").fill("QUESTION, EDITED");
  await listed(["First"]);
  await page.getByRole("searchbox").fill("");
  await listed(["Another subject", "First"]);
  await page.locator("#conversations li").first().hover();
  await page.getByRole("button", { name: "Rename conversation" }).first().click();
  await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Renamed");
  await page.keyboard.press("Enter");
  await until(async () => (await titles()).includes("Renamed"), "renamed");
}

async function files(page) {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export", exact: true }).click();
  const path = await (await download).path();
  assert.equal(JSON.parse(readFileSync(path, "utf8")).conversations.length, 2);
  for (let left = 2; left > 0; left -= 1) {
    await page.locator("#conversations li").first().hover();
    await page.getByRole("button", { name: "Delete conversation" }).first().click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await until(async () => (await page.locator("#conversations li").count()) === left - 1, "deleted");
  }
  await page.locator("#import-file").setInputFiles(path);
  await until(async () => (await page.locator("#conversations li").count()) === 2, "imported");
  await page.getByText("First", { exact: true }).click();
  await reply(page, "Reply four");
  const broken = { name: "broken.json", mimeType: "application/json", buffer: Buffer.from('{"format": "other"}') };
  await page.locator("#import-file").setInputFiles(broken);
  await page.getByText("the file is no export of this page").waitFor();
}
