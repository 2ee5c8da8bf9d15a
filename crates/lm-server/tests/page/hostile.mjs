// Text of a model that is markup, or far too long, stays text.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

const MARKUP = `<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 1"> <style>*{display:none}</style> end`;
const LINKS = "[a](javascript:window.hacked=1) [b](data:text/html,x) [c](//other.example) ![d](https://other.example/p.png) <https://ok.example/>";
const LONG = ["x".repeat(100000), "[".repeat(100000), "*a ".repeat(30000), "`".repeat(99999) + "a", "> ".repeat(5000), "- ".repeat(2000), "|".repeat(4000)];

await withPage(async (page, url) => {
  await open(page, url);
  await send(page, "Attack.");
  await reply(page, "stays text");
  await check(page, ["stays text"]);
  for (const text of [MARKUP, LINKS, ...LONG]) {
    await page.locator("#import-file").setInputFiles(file(text));
    await page.locator(".message.assistant").waitFor();
    await page.getByText("mark of this text").waitFor();
    await check(page, []);
  }
  await page.locator("#import-file").setInputFiles(file(LINKS));
  await page.getByText("javascript:window.hacked=1").waitFor();
  const links = await page.locator("#thread a").evaluateAll((all) => all.map((link) => link.href));
  await send(page, "Go on.");
  await reply(page, "stays text too");
  assert.deepEqual(links, ["https://other.example/p.png", "https://ok.example/"]);
});

async function check(page, texts) {
  for (const text of texts) await page.getByText(text).first().waitFor();
  const found = await page.evaluate(() => ({
    hacked: window.hacked,
    elements: document.querySelectorAll("#thread :is(script, img, style, iframe, object)").length,
  }));
  assert.deepEqual(found, { hacked: undefined, elements: 0 });
}

function file(text) {
  const assistant = { id: "m2", parent: "m1", role: "assistant", content: `${text}\n\nmark of this text`, state: "done" };
  const nodes = { m1: { id: "m1", parent: null, role: "user", content: MARKUP }, m2: assistant };
  const settings = { model: MARKUP, numbers: { temperature: "hot" }, tools: ["rm"], allowed: ["calculate"] };
  const value = { format: "lm-conversations", version: 1, conversations: [{ title: MARKUP, nodes, settings }] };
  return { name: "hostile.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(value)) };
}
