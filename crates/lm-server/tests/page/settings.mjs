// Settings reach the request and the next conversation; the theme, a phone's width, and the keyboard.

import assert from "node:assert/strict";
import { open, reply, send, until, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  const requests = [];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  await settings(page);
  await send(page, "Hello");
  await reply(page, "Reply one");
  const { messages, temperature, top_p, seed, max_tokens, reasoning_effort, model, tools } = requests[0];
  assert.deepEqual(messages.map(({ content }) => content), ["Be brief.", "Hello"]);
  assert.deepEqual({ temperature, top_p, seed, max_tokens, reasoning_effort, model }, {
    temperature: 0, top_p: undefined, seed: 7, max_tokens: 50, reasoning_effort: "none", model: "other/name",
  });
  assert.deepEqual(tools.map((tool) => tool.function.name), ["calculate"]);

  await page.keyboard.press("Control+Shift+O");
  await send(page, "Hello again");
  await reply(page, "Reply two");
  assert.equal(requests[1].temperature, 0, "the next conversation begins with the settings of the last one");
  await phone(page);
});

async function settings(page) {
  await page.getByRole("combobox", { name: "Model" }).selectOption("other/name");
  await until(async () => (await page.locator("#empty-model").textContent()) === "other/name", "the heading names the chosen model");
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByLabel("System prompt").fill("Be brief.");
  await page.getByLabel("Temperature").fill("0");
  await page.getByLabel("Top p").fill("3");
  await page.getByLabel("Max tokens").fill("50");
  await page.getByLabel("Seed").fill("7");
  await page.getByRole("switch", { name: "Thinking" }).uncheck();
  await page.getByRole("switch", { name: "Calculator" }).check();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#settings").isVisible(), false);
  assert.equal(await page.getByRole("button", { name: "Settings", exact: true }).evaluate((button) => button === document.activeElement), true);
}

async function phone(page) {
  await page.getByRole("button", { name: "Dark theme" }).click();
  await page.reload();
  await page.waitForSelector("body[data-ready]");
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  assert.equal(await scheme(), "dark");
  await page.setViewportSize({ width: 360, height: 640 });
  const drawer = page.locator("#sidebar");
  await until(() => drawer.evaluate((element) => element.inert), "the drawer is closed");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, "nothing is wider than the screen");
  await page.getByRole("button", { name: "Conversations", exact: true }).click();
  await page.getByText("Hello", { exact: true }).first().click();
  await reply(page, "Reply one");
  assert.equal(await drawer.evaluate((element) => element.inert), true, "a choice closes the drawer");
  const unnamed = await page.locator("button:not([aria-label])").evaluateAll((all) => all.filter((button) => !button.textContent.trim()).length);
  assert.equal(unnamed, 0, "every button has a name");
}
