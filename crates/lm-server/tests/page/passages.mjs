// A file that is too long for the context: the message has passages of it, shows them, and keeps them; a later message has further ones.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

const page = (number, topic) => `--- page ${number} ---\n${`This is about ${topic}. `.repeat(60)}\n`;
const topics = ["coal", "wind", "tides", "quokkas", "wombats", "koalas", "emus", "ants", "bees", "cats", "dogs", "eels"];
const text = topics.map((topic, index) => page(index + 1, topic)).join("");

await withPage(async (page, url) => {
  await open(page, url);
  const requests = [];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  await page.locator("#file-file").setInputFiles([{ name: "animals.txt", mimeType: "text/plain", buffer: Buffer.from(text) }]);
  await page.locator("#media .file").waitFor();
  await send(page, "What of quokkas?");
  await reply(page, "Reply one");
  const [{ text: prompt }, { text: question }] = requests[0].messages[0].content;
  assert.equal(question, "What of quokkas?");
  assert.match(prompt, /^File "animals\.txt \(excerpts\)":\n```\n\[…\]\n--- page 4 ---\nThis is about quokkas/);
  assert.doesNotMatch(prompt, /coal/);
  const shown = page.locator(".user .excerpts summary").first();
  assert.match(await shown.textContent(), /^animals\.txt: \d+ of \d+ passages, those that share words with the message; pages 4$/);

  await send(page, "And wombats?");
  await reply(page, "Reply two");
  assert.deepEqual(requests[1].messages[0], requests[0].messages[0], "the first message stays as it was");
  assert.match(requests[1].messages[2].content[0].text, /--- page 5 ---\nThis is about wombats/);
  assert.match(await page.locator(".user .excerpts summary").last().textContent(), /passages, further; pages 5$/);

  await page.reload();
  await shown.click();
  await page.locator(".user .excerpts pre").first().getByText("This is about quokkas").waitFor();
});
