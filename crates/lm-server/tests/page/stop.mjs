// Stops a reply that does not end: with its button, with Escape; deleting its conversation.

import assert from "node:assert/strict";
import { open, send, until, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  await send(page, "Go on for ever.");
  const shown = page.locator(".message.assistant .markdown").last();
  const length = async () => (await shown.textContent()).length;
  // Not the text of the reply before, which is shown until the next frame.
  const growing = page.locator(".message.assistant.streaming .markdown");
  const textArrives = () => until(async () => (await growing.allTextContents()).join("").length > 10, "text");
  await textArrives();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  const stopped = await length();
  const [request] = await Promise.all([
    page.waitForRequest((request) => request.url().endsWith("/completions")),
    page.getByRole("button", { name: "Continue" }).click(),
  ]);
  const { continue_final_message: continues, messages } = request.postDataJSON();
  assert.equal(continues, true);
  assert.equal(messages.at(-1).role, "assistant");
  await until(async () => (await length()) > stopped, "more text");
  await page.keyboard.press("Escape");
  await page.getByText("Stopped.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Send" }).isVisible(), true);

  await page.getByRole("button", { name: "Regenerate" }).click();
  await textArrives();
  await page.reload();
  await page.getByText("The page was closed before the reply was complete.").waitFor();

  await page.getByRole("button", { name: "Regenerate" }).click();
  await textArrives();
  await page.locator("#conversations li").hover();
  await page.getByRole("button", { name: "Delete conversation" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("No conversations yet").waitFor();
  await open(page, url);
  assert.equal(await page.locator("#conversations li").count(), 0, "a deleted conversation does not come back");
});
