// The models of the server: loaded, unloaded, and downloaded.

import assert from "node:assert/strict";
import { checkAccess, open, reply, send, until, withPage } from "./browser.mjs";

await withPage(async (page, url) => {
  await open(page, url);
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await page.getByText("Models of the server").click();
  const rows = () => page.locator("#model-list li").allInnerTexts();
  await until(async () => (await rows())[0]?.includes("7 B"), "the size of the files");
  await page.getByRole("button", { name: "Load first" }).click();
  await page.getByRole("button", { name: "Unload first" }).waitFor();
  assert.match((await rows())[0], /in memory/);
  await page.getByRole("button", { name: "Unload first" }).click();
  await page.getByRole("button", { name: "Load first" }).waitFor();

  const name = page.getByLabel("Download a model");
  await name.fill("owner/other");
  await page.keyboard.press("Enter");
  await page.getByText("owner/other: there is no `owner/other`").waitFor();
  await name.fill("owner/new");
  await page.getByRole("button", { name: "Download", exact: true }).click();
  await page.getByText("owner/new is here").waitFor();
  assert.equal(await name.inputValue(), "");
  await checkAccess(page, "the models");
  await page.getByRole("combobox", { name: "Model", exact: true }).selectOption("owner/new");
  await send(page, "Hello");
  await reply(page, "From the new one");
});
