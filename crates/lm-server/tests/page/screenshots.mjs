// Makes the images in docs/page: node screenshots.mjs http://127.0.0.1:8080/, the address of `lm serve` with the embedded model.

import { fileURLToPath } from "node:url";
import { open, reply, send, withPage } from "./browser.mjs";

const image = (page, name) => page.screenshot({ path: fileURLToPath(new URL(`../../../../docs/page/${name}.png`, import.meta.url)) });
const viewport = { width: 1000, height: 640 };

/** Delays the parts of replies, so that an image shows one that grows. */
function slowly() {
  const original = window.fetch;
  window.fetch = async (...request) => {
    const response = await original(...request);
    const wait = () => new Promise((resolve) => setTimeout(resolve, 150));
    const transform = async (part, controller) => (await wait(), controller.enqueue(part));
    return new Response(response.body.pipeThrough(new TransformStream({ transform })), response);
  };
}

async function askAboutTheWeather(page) {
  await page.getByText("How is the weather in Paris?").click();
  await page.getByRole("button", { name: "Approve" }).click();
  return reply(page, "sunny");
}

await withPage(async (page, url) => {
  await open(page, url);
  await image(page, "empty");
}, { viewport });

await withPage(async (page, url) => {
  await open(page, url);
  await askAboutTheWeather(page);
  await page.addInitScript(slowly);
  await page.reload();
  await page.getByRole("button", { name: "Tools" }).click({ clickCount: 2, delay: 300 });
  await send(page, "What is the stock price of GOOGL?");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(".streaming .call[data-outcome=ok] summary").last().click();
  await page.locator(".streaming .reply:last-child .markdown p", { hasText: /\w+ \w+ \w+/ }).waitFor();
  await image(page, "tool-call");
}, { viewport: { width: 1000, height: 760 } });

await withPage(async (page, url) => {
  await open(page, url);
  await askAboutTheWeather(page);
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await image(page, "dark");
}, { viewport: { width: 1200, height: 720 }, colorScheme: "dark" });

await withPage(async (page, url) => {
  await open(page, url);
  await askAboutTheWeather(page);
  await page.locator(".call summary").click();
  await image(page, "phone");
}, { viewport: { width: 390, height: 640 }, hasTouch: true });
