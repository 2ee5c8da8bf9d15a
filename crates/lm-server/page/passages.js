// Passages of text files that are too long for a message: the server chooses those that share words with it.
//
// A message has `excerpts`, each {file, name, prompt, chosen, of, pages, fits}: `file` is the index of its medium that the passages stand for, or
// {message, file} of an earlier message for further passages of a file.

import { kindOf } from "./media.js";
import { t } from "./text.js";
import { fromMedium, room } from "./text_file.js";

/** Largest size of the passages that a message has of its files, in bytes, some 4,000 tokens: more take long to read, and hide what was asked for. */
const FIRST = 16000;

/** Largest size of the passages that a later message has of a file before it, in bytes: some 1,200 tokens. */
const FURTHER = 4800;

const bytesOf = (text) => new TextEncoder().encode(text).length;

/**
 * Chooses the excerpts of the last message of the user, unless it has them. `server` has choosePassages(body), countTokens(text) and contextTokens(),
 * which resolves to null if that is not known.
 */
export async function chooseExcerpts(nodes, server) {
  const node = nodes.findLast(({ role }) => role === "user");
  if (!node || node.excerpts) return;
  const media = node.media ?? [];
  const texts = media.flatMap((medium, file) => (kindOf(medium) === "text" ? [{ file, ...fromMedium(medium) }] : []));
  const earlier = shortened(nodes.slice(0, nodes.indexOf(node)));
  if (!texts.length && !earlier.length) return;
  const further = [];
  for (const { sent, name, text, ...file } of earlier) {
    const answer = await server.choosePassages({ name, text, question: node.content, bytes: FURTHER, sent });
    if (answer.chosen.length) further.push({ file, name, ...answer });
  }
  node.excerpts = [...further, ...(await beginnings(node, texts, server))];
}

/** Excerpts of the files of a message that exceed their share of the context. */
async function beginnings(node, texts, server) {
  // A token has at least one byte.
  const sum = texts.reduce((sum, { text }) => sum + bytesOf(text), 0);
  const tokens = sum > 0 ? await server.contextTokens() : null;
  if (!tokens || sum <= room(tokens)) return [];
  const excerpts = [];
  for (const { file, name, text } of texts) {
    const most = room(tokens) / texts.length;
    const size = bytesOf(text) <= most ? 0 : await server.countTokens(text);
    if (!(size > most)) continue;
    const bytes = Math.min(Math.floor((bytesOf(text) * most) / size), FIRST);
    excerpts.push({ file, name, ...(await server.choosePassages({ name, text, question: node.content, bytes })) });
  }
  return excerpts;
}

/** Files of which messages have passages: their place, name, text and the passages that were `sent`. */
function shortened(nodes) {
  const files = new Map();
  for (const { id, media = [], excerpts = [] } of nodes) {
    for (const { file, chosen } of excerpts) {
      if (typeof file === "number") files.set(`${id}/${file}`, { message: id, file, ...fromMedium(media[file]), sent: [...chosen] });
      else files.get(`${file.message}/${file.file}`)?.sent.push(...chosen);
    }
  }
  return [...files.values()];
}

/** Number of passages of an excerpt, and the pages that they are of. */
export function describe({ name, chosen, of, pages, fits, file }) {
  const kind = typeof file !== "number" ? t("further") : fits ? t("those that share words with the message") : t("the first");
  const shown = `${pages.slice(0, 12).join(", ")}${pages.length > 12 ? ", …" : ""}`;
  return t("{0}: {1} of {2} passages, {3}", name, chosen.length, of, kind) + (pages.length ? t("; pages {0}", shown) : "");
}

/** Returns the valid excerpts of a message from a file or a server. */
export function checkedExcerpts(value, media) {
  const isFile = (file) => (typeof file === "number" ? kindOf(media[file]) === "text" : typeof file?.message === "string" && Number.isInteger(file.file));
  const areNumbers = (list) => Array.isArray(list) && list.every(Number.isInteger);
  const isValid = (excerpt) =>
    isFile(excerpt?.file) && typeof excerpt.name === "string" && typeof excerpt.prompt === "string" && Number.isInteger(excerpt.of) && areNumbers(excerpt.chosen) && areNumbers(excerpt.pages);
  return Array.isArray(value) ? value.filter(isValid).map(({ file, name, prompt, chosen, of, pages, fits }) => ({ file, name, prompt, chosen, of, pages, fits: fits === true })) : undefined;
}
