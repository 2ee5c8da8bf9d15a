// A reply with formulas, code and tables: rendered while it grows, again after a lost stream, and as plain text without the renderer.

import assert from "node:assert/strict";
import { open, reply, send, withPage } from "./browser.mjs";

await withPage(async (page, url, log) => {
  await open(page, url);
  await formats(page);
  await survivesALostStream(page, log);
  await failsAsText(page, log);
});

async function formats(page) {
  await send(page, "Show all");
  const shown = await reply(page, "the end");
  const math = shown.locator("math").first();
  assert.equal(await math.locator("mfrac").count(), 1);
  const box = await math.boundingBox();
  assert.ok(box.height > 15 && box.width > 20, "a formula is drawn");
  assert.equal(await shown.locator(".code .c-keyword").first().textContent(), "fn");
  const colour = (selector) => shown.locator(selector).first().evaluate((element) => getComputedStyle(element).color);
  assert.notEqual(await colour(".c-keyword"), await colour(".c-string"));
  assert.deepEqual(await shown.locator("td").allTextContents(), ["1", "$5 and $6"]);
  assert.equal(await shown.locator("li.task .box").count(), 1);
  assert.equal(await shown.locator("script, img, style").count(), 0);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await shown.getByRole("button", { name: "Copy code" }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'fn main() {\n    let x = "<b>";\n}');
}

async function survivesALostStream(page, log) {
  log.expected.push("409");
  let lost = false;
  await page.route("**/page/render", (route) => {
    const { at } = route.request().postDataJSON();
    if (lost || at === 0) return route.continue();
    lost = true;
    const error = { message: "gone", code: "stream_restart" };
    return route.fulfill({ status: 409, contentType: "application/json", body: JSON.stringify({ error }) });
  });
  await send(page, "Again");
  const shown = await reply(page, "the second end");
  assert.equal(await shown.locator("strong").count(), 3);
  await page.unroute("**/page/render");
}

async function failsAsText(page, log) {
  log.expected.push("net::ERR_FAILED");
  await page.route("**/page/render", (route) => route.abort());
  await send(page, "Once more");
  const shown = await reply(page, "**three** <b>");
  assert.equal(await shown.locator("strong, b").count(), 0);
  await page.unroute("**/page/render");
}
