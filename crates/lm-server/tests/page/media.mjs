// Images, audio and documents: chosen, removed, sent before the text, shown after a reload, and kept when the message is edited.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { open, send, withPage } from "./browser.mjs";

/** A PNG of one red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/** A WAV file of one sample. */
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQIAAAAAAA==";
const file = (name, mimeType, base64 = PNG) => ({ name, mimeType, buffer: Buffer.from(base64, "base64") });

await withPage(async (page, url, log) => {
  log.expected.push("status of 400");
  await open(page, url);
  const requests = [];
  page.on("request", (request) => request.url().endsWith("/completions") && requests.push(request.postDataJSON()));
  const input = page.locator("#image-file");
  const tray = page.locator("#media img");
  await page.getByRole("button", { name: "Image", exact: true }).waitFor();
  await input.setInputFiles([file("a.png", "image/png"), file("b.png", "image/png")]);
  await tray.nth(1).waitFor();
  await page.getByRole("button", { name: "Remove image" }).first().click();
  assert.equal(await tray.count(), 1);
  await input.setInputFiles([file("notes.txt", "text/plain", "SGVsbG8="), file("fake.png", "image/png", "SGVsbG8=")]);
  await page.getByText("notes.txt is no image: expected PNG").waitFor();
  await page.getByText("fake.png is no image").waitFor();
  await page.locator("#audio-file").setInputFiles([file("a.wav", "audio/wav", WAV), file("b.png", "image/png")]);
  await page.getByText("b.png is no audio").waitFor();
  await page.locator("#media audio").waitFor();
  const buffer = await readFile(new URL("../../../lm-documents/tests/files/table.pdf", import.meta.url));
  await page.locator("#file-file").setInputFiles([{ name: "prices.pdf", mimeType: "application/pdf", buffer }, file("bad.pdf", "application/pdf", "JVBERi0xLjcKeA==")]);
  await page.getByText("bad.pdf: it is a damaged PDF file").waitFor();
  await page.locator("#media .file").waitFor();
  await page.locator("#media").getByText(/^\d+ tokens$/).waitFor();

  await pastes(page);

  await send(page, "What is it?");
  await page.locator(".user .media img").waitFor();
  assert.equal(await tray.count(), 0, "the tray is empty after the message is sent");
  await page.locator(".message:not(.user) .stats").waitFor();
  const audio = { type: "input_audio", input_audio: { data: WAV, format: "wav" } };
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
  const table = "--- page 1 ---\nPrices\nItem   Quantity   Price\nApples   3   1.20\nPears and plums   12   4.80\n";
  const prices = { type: "text", text: `File "prices.pdf":\n\`\`\`\n${table}\`\`\`\n\n` };
  assert.deepEqual(requests[0].messages, [{ role: "user", content: [image, audio, prices, { type: "text", text: "What is it?" }] }]);

  await page.reload();
  assert.equal(await page.locator("#paste-files").isChecked(), false, "the switch is kept");
  await page.locator(".user .media img").waitFor();
  await page.locator(".user .media audio").waitFor();
  await page.locator(".user").hover();
  await page.getByRole("button", { name: "Edit message" }).click();
  await page.locator("textarea.edit").fill("And now?");
  await page.keyboard.press("Enter");
  await page.getByText("And now?").waitFor();
  await page.locator(".message:not(.user) .stats").waitFor();
  assert.deepEqual(requests.at(-1).messages[0].content, [image, audio, prices, { type: "text", text: "And now?" }]);
});

/** Long pastes become files, unless that is switched off. */
async function pastes(page) {
  const paste = (text) =>
    page.locator("#message").evaluate((area, text) => {
      const data = new DataTransfer();
      data.setData("text/plain", text);
      return area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }, text);
  const files = page.locator("#media .file");
  assert.equal(await paste("x".repeat(2000)), true, "the browser inserts a short text");
  assert.equal(await paste("long ".repeat(500)), false);
  await page.locator("#media").getByText("pasted.txt").waitFor();
  await page.getByRole("button", { name: "Remove file" }).last().click();
  assert.equal(await files.count(), 1);
  await page.locator("#paste-files").evaluate((input) => input.click());
  assert.equal(await paste("long ".repeat(500)), true);
  assert.equal(await files.count(), 1);
}
