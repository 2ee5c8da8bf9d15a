// German: by the browser's languages, and by choice.

import assert from "node:assert/strict";
import { checkAccess, open, reply, send, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  await page.getByRole("heading", { name: "Womit kann ich helfen?" }).waitFor();
  await page.getByRole("textbox", { name: "Nachricht" }).fill("Hallo");
  await page.keyboard.press("Enter");
  const answer = await reply(page, "Reply one");
  assert.match(await answer.locator(".stats").textContent(), / Token.* · erstes nach /);
  await page.getByRole("button", { name: "Einstellungen", exact: true }).click();
  await page.getByText("größten liegt").first().waitFor({ state: "attached" });
  await checkAccess(page, "the German page");
  await page.keyboard.press("Escape");
  await Promise.all([page.waitForNavigation(), page.getByLabel("Sprache").selectOption("en")]);
  await page.waitForSelector("body[data-ready]");
  await send(page, "Hello");
  await reply(page, "Reply two");
  await page.getByRole("button", { name: "Settings", exact: true }).waitFor();
}, { locale: "de-DE" });
