// Text and PDF files of messages: their texts are kept as data URLs beside images and audio, and sent as text.

import { count, t } from "./text.js";

/** Largest text of a file, in bytes. */
const MAX_BYTES = 2 * 1024 * 1024;

const PREFIX = /^data:text\/plain;name=([^;,]*);base64,/;

/** Largest share of the context that the files of a message may take. */
const SHARE = 0.5;

/** Tokens that the files of a message may take. */
export const room = (contextTokens) => Math.floor(contextTokens * SHARE);

/** Tokens of a file, and that the message has passages of it if they exceed their share of the context. */
export function sizeText(tokens, contextTokens) {
  const isLarge = contextTokens && tokens > room(contextTokens);
  return t(isLarge ? "{0} tokens: the message will have passages that fit it" : "{0} tokens", count(tokens));
}

/** Text of a file, which `read` extracts: text of any encoding, PDF. Throws an error that says why it has none. */
export async function readText(file, read) {
  const { text } = await read(file).catch(({ message }) => {
    throw new Error(`${file.name}: ${message}`);
  });
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MAX_BYTES) throw new Error(t("{0}: its text has {1} bytes, and at most {2} are sent", file.name, count(bytes), count(MAX_BYTES)));
  return text;
}

/** The data URL that keeps a text with its name. */
export function toMedium(name, text) {
  const bytes = new TextEncoder().encode(text);
  const characters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `data:text/plain;name=${encodeURIComponent(name)};base64,${btoa(characters)}`;
}

/** Name and text of a data URL of `toMedium`. */
export function fromMedium(medium) {
  const [head, name] = PREFIX.exec(medium);
  const characters = atob(medium.slice(head.length));
  return { name: nameOf(name), text: new TextDecoder().decode(Uint8Array.from(characters, (character) => character.charCodeAt(0))) };
}

function nameOf(encoded) {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** The file as the model reads it: its name, and its content between lines that the content does not have. */
export function toPrompt({ name, text }) {
  let fence = "```";
  while (text.includes(fence)) fence += "`";
  const end = text.endsWith("\n") ? "" : "\n";
  return `File ${JSON.stringify(name)}:\n${fence}\n${text}${end}${fence}\n\n`;
}
