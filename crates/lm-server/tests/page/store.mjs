// A server that keeps conversations: two browsers and `lm chat` have one list; what a browser had kept before moves there.

import assert from "node:assert/strict";
import { open, reply, send, until, withPage } from "./browser.mjs";

const titles = (page) => page.locator("#conversations .title").allTextContents();
const listed = (page, expected) => until(async () => (await titles(page)).join("|") === expected.join("|"), `the list is ${expected}`);

await withPage(async (page, url) => {
  // A database of an earlier version of the page.
  await page.route("**/favicon.ico", (route) => route.fulfill({ status: 204 }));
  await page.goto(`${url}page/icon.svg`);
  await page.evaluate(keepInBrowser);
  await open(page, url);
  await listed(page, ["Of the browser"]);
  assert.equal(await page.locator("#kept-in").textContent(), "Conversations are kept by the server.");
  await until(async () => (await kept(url)).total === 1, "moved");
  assert.equal(await page.evaluate(countInBrowser), 0, "the browser has it no longer");
  await page.getByText("Of the browser", { exact: true }).click();
  await reply(page, "An old reply");

  await page.keyboard.press("Control+Shift+O");
  await page.locator("#file-file").setInputFiles([{ name: "my notes.txt", mimeType: "text/plain", buffer: Buffer.from("Hello") }]);
  await page.locator("#media .file").waitFor();
  await send(page, "First question");
  await reply(page, "Reply one");
  await listed(page, ["First question", "Of the browser"]);
  await until(async () => Object.values((await chat(url, "First question"))?.nodes ?? {}).some(({ content }) => content === "Reply one"), "the reply is kept");

  // Another browser, with nothing of its own.
  const other = await (await page.context().browser().newContext()).newPage();
  await open(other, url);
  await listed(other, ["First question", "Of the browser"]);
  await other.getByText("First question", { exact: true }).click();
  await reply(other, "Reply one");
  await other.locator(".user .file").getByText("my notes.txt").waitFor();
  await send(other, "Second question");
  await reply(other, "Reply two");
  await until(async () => Object.keys((await chat(url, "First question")).nodes).length === 4, "the turn is kept");

  // The first one shows it when it is used again.
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await reply(page, "Reply two");

  await page.getByRole("searchbox").fill("old reply");
  await listed(page, ["Of the browser"]);
  await page.getByRole("searchbox").fill("nothing of this");
  await page.getByText("Nothing found").waitFor();
  await page.getByRole("searchbox").fill("");
  await listed(page, ["First question", "Of the browser"]);

  // What a terminal writes.
  const nodes = { m1: { id: "m1", parent: null, role: "user", content: "From a terminal" }, m2: { id: "m2", parent: "m1", role: "assistant", content: "Good evening", state: "done" } };
  await fetch(`${url}v1/chats/cterminal`, { method: "POST", body: JSON.stringify({ create: true, title: "Terminal", nodes, settings: { allowed: ["calculate"], system: 3 } }) });
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await listed(page, ["Terminal", "First question", "Of the browser"]);
  await page.getByText("Terminal", { exact: true }).click();
  await reply(page, "Good evening");

  // Renamed, and deleted, also by another program while it is shown.
  await page.locator("#conversations li").nth(2).hover();
  await page.getByRole("button", { name: "Rename conversation" }).nth(2).click();
  await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Renamed");
  await page.keyboard.press("Enter");
  await until(async () => (await chat(url, "Renamed")) !== null, "renamed");
  await page.locator("#conversations li").last().hover();
  await page.getByRole("button", { name: "Delete conversation" }).last().click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await until(async () => (await kept(url)).total === 2, "deleted");
  await page.getByText("Terminal", { exact: true }).click();
  await reply(page, "Good evening");
  await page.reload();
  await page.waitForSelector("body[data-ready]");
  await listed(page, ["Terminal", "First question"]);
  await reply(page, "Good evening");
});

async function kept(url) {
  return (await fetch(`${url}v1/chats`)).json();
}

async function chat(url, title) {
  const row = (await kept(url)).data.find((row) => row.title === title);
  return row ? (await fetch(`${url}v1/chats/${row.id}`)).json() : null;
}

function keepInBrowser() {
  const question = { id: "m1", parent: null, role: "user", content: "An old question", media: [] };
  const reply = { id: "m2", parent: "m1", role: "assistant", content: "An old reply", reasoning: "", calls: [], state: "done", stats: null, model: "" };
  const settings = { model: "", system: "", numbers: {}, thinking: true, tools: [], allowed: [] };
  const conversation = { id: "cold", title: "Of the browser", created: 1, updated: 2, settings, nodes: { m1: question, m2: reply }, selected: { "": "m1", m1: "m2" } };
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("lm", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("conversations", { keyPath: "id" });
    request.onsuccess = () => {
      const transaction = request.result.transaction("conversations", "readwrite");
      transaction.objectStore("conversations").put(conversation);
      transaction.oncomplete = () => {
        request.result.close();
        resolve();
      };
    };
    request.onerror = () => reject(request.error);
  });
}

function countInBrowser() {
  return new Promise((resolve) => {
    const request = indexedDB.open("lm", 1);
    request.onsuccess = () => {
      const count = request.result.transaction("conversations").objectStore("conversations").count();
      count.onsuccess = () => {
        request.result.close();
        resolve(count.result);
      };
    };
  });
}
