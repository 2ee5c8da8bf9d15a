// A page in headless Chromium, and what every test checks of it: no request to another origin, no error, no violation of the policy.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const folder = new URL("../../../../target/page-test/", import.meta.url);
const { chromium } = createRequire(folder)("playwright-core");
const axe = readFileSync(createRequire(folder).resolve("axe-core/axe.min.js"), "utf8");

/** Longest wait, for machines that do much else. */
const PATIENCE_MS = 120000;

/** Runs a test with a page at the address of the command line; `options` are those of a browser context. */
export async function withPage(test, options = {}) {
  const url = process.argv[2];
  const executablePath = readFileSync(new URL("browser", folder), "utf8").trim();
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const [page, log] = [await context.newPage(), watch(context, url)];
    await test(page, url, log).then(() => page.isClosed() || checkAccess(page, "the end")).catch(async (error) => {
      console.error(await page.locator("body").innerText());
      throw error;
    });
    assert.deepEqual(log.foreign, [], "requests to other origins");
    assert.deepEqual(log.errors, [], "errors of the page");
  } finally {
    await browser.close();
  }
}

function watch(context, url) {
  const log = { foreign: [], errors: [], expected: [] };
  context.on("request", (request) => {
    const target = request.url();
    if (!/^(data|blob):/.test(target) && new URL(target).origin !== new URL(url).origin) log.foreign.push(target);
  });
  context.on("weberror", (error) => log.errors.push(String(error.error())));
  context.on("console", (message) => {
    const isExpected = log.expected.some((text) => message.text().includes(text));
    if (message.type() === "error" && !isExpected) log.errors.push(message.text());
  });
  return log;
}

/** Checks the page as it is for people who use a keyboard, a screen reader or large contrast, by the rules of axe-core. */
export async function checkAccess(page, state) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
  assert.deepEqual(found, [], `accessibility of ${state}`);
}

/** Opens the page, and waits until it can be used. */
export async function open(page, url) {
  await page.goto(url);
  await page.waitForSelector("body[data-ready]");
}

/** Sends a message. */
export async function send(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until the last turn is complete, and has this text. */
export async function reply(page, text) {
  const last = page.locator(".message.assistant").last();
  await last.locator(".markdown", { hasText: text }).last().waitFor();
  await page.locator(".message.assistant:last-child:not(.streaming)").waitFor();
  await until(async () => (await page.locator(".markdown[data-rendering]").count()) === 0, "rendered");
  return last;
}

/** Waits until a condition holds. */
export async function until(condition, what) {
  for (let tries = 0; tries < PATIENCE_MS / 100; tries += 1) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`still not: ${what}`);
}
