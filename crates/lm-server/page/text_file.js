// Text files of messages: kept as data URLs beside images and audio, and sent as text.

/** Largest text file, in bytes. */
const MAX_BYTES = 2 * 1024 * 1024;

const PREFIX = /^data:text\/plain;name=([^;,]*);base64,/;

/** Reads a file as text; throws an error that says why it is none. */
export async function readText(file) {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} has ${file.size} bytes: text files have at most ${MAX_BYTES}`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const text = decoded(bytes);
  if (text === null) throw new Error(`${file.name} is no text file`);
  return text.replaceAll("\r\n", "\n");
}

/** Text of bytes: by their byte order mark, as UTF-8, or as Windows-1252. Null for bytes that are no text. */
export function decoded(bytes) {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  // Formats that begin with text have such bytes, too: PDF.
  if (bytes.includes(0) || String.fromCharCode(...bytes.subarray(0, 5)) === "%PDF-") return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
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
