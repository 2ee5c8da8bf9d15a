// Settings reach the request and the next conversation; the theme, a phone's width, and the keyboard.

import assert from "node:assert/strict";
import { checkAccess, open, reply, send, until, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  const requests = [];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  await settings(page);
  await send(page, "Hello");
  await reply(page, "Reply one");
  const { messages, temperature, top_p, seed, max_tokens, reasoning_effort, model, tools, stop, response_format, min_p } = requests[0];
  assert.deepEqual([stop, response_format, min_p], [["END", "###"], undefined, 0.1], "an invalid schema is not sent");
  assert.deepEqual(messages.map(({ content }) => content), ["Be brief.", "Hello"]);
  assert.deepEqual({ temperature, top_p, seed, max_tokens, reasoning_effort, model }, {
    temperature: 0, top_p: undefined, seed: 7, max_tokens: 50, reasoning_effort: undefined, model: "other/name",
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
  await preset(page);
  await page.getByLabel("System prompt").fill("Be brief.");
  await page.getByLabel("Temperature").fill("0");
  await page.getByLabel("Top p").fill("3");
  await page.getByLabel("Max tokens").fill("50");
  await page.getByLabel("Seed").fill("7");
  await rare(page);
  await page.getByRole("switch", { name: "Calculator" }).check();
  await checkAccess(page, "the settings");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#settings").isVisible(), false);
  assert.equal(await page.getByRole("button", { name: "Settings", exact: true }).evaluate((button) => button === document.activeElement), true);
}

/** A preset replaces the settings. */
async function preset(page) {
  await page.getByLabel("System prompt").fill("Mine.");
  await page.getByLabel("Seed").fill("3");
  await page.getByLabel("Preset").selectOption("short");
  const value = (label) => page.getByLabel(label).inputValue();
  await until(async () => (await value("Temperature")) === "0.5", "the temperature of the preset");
  assert.deepEqual([await value("Seed"), await value("System prompt"), await value("Max tokens"), await value("Preset")], ["", "Mine.", "20", ""]);
  assert.equal(await page.locator("#set-stop").inputValue(), "a\nb");
}

async function rare(page) {
  const hint = (name) => page.locator(`#hint-${name}`).textContent();
  assert.equal(await hint("top_p"), "not used: this is a number from 0 to 1");
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Min p").fill("0.1");
  await page.getByLabel("Stop strings").fill("END\n\n###");
  const schema = page.getByLabel("JSON Schema");
  await schema.fill('{"type": "object"}');
  assert.equal(await hint("schema"), "a reply is JSON of this schema");
  await schema.fill("[1]");
  assert.match(await hint("schema"), /^not used: a schema is an object/);
  assert.equal(await schema.getAttribute("aria-invalid"), "true");
  // The model of the test has no switch for its reasoning.
  for (const name of ["Reasoning effort", "Thinking"]) assert.equal(await page.getByLabel(name).first().isVisible(), false, name);
}

async function phone(page) {
  await page.getByRole("button", { name: "Dark theme" }).click();
  await page.reload();
  await page.waitForSelector("body[data-ready]");
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  assert.equal(await scheme(), "dark");
  await checkAccess(page, "the dark theme");
  await page.setViewportSize({ width: 360, height: 640 });
  const drawer = page.locator("#sidebar");
  await until(() => drawer.evaluate((element) => element.inert), "the drawer is closed");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, "nothing is wider than the screen");
  await page.getByRole("button", { name: "Conversations", exact: true }).click();
  await checkAccess(page, "the list on a phone");
  await page.getByText("Hello", { exact: true }).first().click();
  await reply(page, "Reply one");
  assert.equal(await drawer.evaluate((element) => element.inert), true, "a choice closes the drawer");
  const unnamed = await page.locator("button:not([aria-label])").evaluateAll((all) => all.filter((button) => !button.textContent.trim()).length);
  assert.equal(unnamed, 0, "every button has a name");
}
