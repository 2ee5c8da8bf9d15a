// Texts of the page: English in the code and in index.html, other languages in tables from it.

import { GERMAN } from "./german.js";
import { remember, remembered } from "./remember.js";

const TABLES = { de: GERMAN };

/** Names of the languages by their tags. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

const known = (tag) => Object.keys(LANGUAGES).find((name) => String(tag).toLowerCase().split("-")[0] === name);

/** Tag of the language: the user's choice, or the first one of the browser's that there is. */
export const language = known(remembered("language", "")) ?? (globalThis.navigator?.languages ?? []).map(known).find(Boolean) ?? "en";

/** A text in the language of the page, with values in place of `{0}`, `{1}`, …. */
export const t = (text, ...values) => translated(text, language).replace(/\{(\d)\}/g, (_, index) => values[index]);

/** A text of English in a language. */
export const translated = (text, language) => TABLES[language]?.[text] ?? text;

/** A number as people write it. */
export const count = (number) => number.toLocaleString(language === "en" ? "en-US" : language);

/** Attributes of index.html that people read. */
const ATTRIBUTES = ["title", "aria-label", "placeholder", "alt"];

/** Translates index.html, and lets the menu change the language. */
export function startLanguage() {
  document.documentElement.lang = language;
  if (language !== "en") translate(document.body);
  const menu = document.getElementById("language");
  for (const [tag, name] of Object.entries(LANGUAGES)) menu.append(Object.assign(document.createElement("option"), { value: tag, textContent: name, lang: tag }));
  menu.value = language;
  menu.addEventListener("change", () => {
    remember("language", menu.value);
    location.reload();
  });
}

function translate(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data } = walker.currentNode;
    if (data.trim()) walker.currentNode.data = data.replace(data.trim(), () => t(data.trim()));
  }
  for (const name of ATTRIBUTES) for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, t(element.getAttribute(name)));
}
