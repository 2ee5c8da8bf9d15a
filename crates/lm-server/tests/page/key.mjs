// A server that needs a key: the page asks for it, and forgets it with the tab.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

await withPage(async (page, url, log) => {
  log.expected.push("401");
  await page.goto(url);
  const key = page.getByLabel("API key", { exact: true }).and(page.locator("input"));
  await key.fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("the API key is invalid").waitFor();
  await key.fill("secret");
  await page.getByRole("button", { name: "Use key" }).click();
  await page.waitForSelector("body[data-ready]");
  await send(page, "Hello");
  await reply(page, "Welcome");
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("secret")), false);
  await open(page, url);
  assert.equal(await page.locator("#key-dialog").isVisible(), false, "the tab keeps the key");
});
