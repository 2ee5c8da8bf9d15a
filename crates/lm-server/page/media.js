// Images, audio and text files of the message that is being written.

import { byId, el, iconButton, setChildren } from "./dom.js";
import { remember, remembered } from "./remember.js";
import { count, t } from "./text.js";
import { fromMedium, readText, sizeText, toMedium, toPrompt } from "./text_file.js";

/** Largest file, and largest sum of the files of a message: base64 adds a third, and the server takes bodies of 16 MiB. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Longest text that is pasted into the message itself, in characters, unless the user has switched that off. */
const LONGEST_PASTE = 2000;

/** Kinds of media by their MIME types, which are also the names of the model's modalities. */
const KINDS = {
  image: { name: "image", label: t("image"), formats: t("PNG, JPEG, WebP, GIF or BMP"), element: (url) => el("img", { src: url, alt: t("Image") }) },
  text: { name: "file", label: t("file"), formats: t("text or PDF"), element: textElement },
  audio: { name: "audio", label: t("audio"), formats: t("WAV, FLAC, MP3 or Ogg Vorbis"), element: (url) => el("audio", { src: url, controls: true, "aria-label": t("Audio") }) },
};

/** Formats of audio, as the API names them, by their MIME types. */
const FORMATS = { mpeg: "mp3", mp3: "mp3", flac: "flac", ogg: "ogg", wav: "wav", wave: "wav", "vnd.wave": "wav" };

/** Beginnings of files by their MIME types, as texts of one character a byte. */
const BEGINNINGS = [
  ["image/png", /^\x89PNG/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
  ["image/bmp", /^BM/],
  ["audio/wav", /^RIFF|^RF64/],
  ["audio/flac", /^fLaC/],
  ["audio/ogg", /^OggS/],
  ["audio/mpeg", /^(?:ID3|\xff[\xe2\xe3\xea\xeb\xf2\xf3\xfa\xfb])/],
];

/** MIME type of a file by its first 16 bytes, whatever its name is; undefined for formats that the server does not read. */
export function mimeOf(bytes) {
  const beginning = String.fromCharCode(...bytes);
  return BEGINNINGS.find(([, pattern]) => pattern.test(beginning))?.[0];
}

/** Kind of an image, an audio clip or a text file as messages keep it: a data URL. Undefined for any other value. */
export function kindOf(value) {
  const pattern = /^data:(?:(image|audio)\/[a-z0-9.+-]+|(text)\/plain;name=[A-Za-z0-9%.!~*'()_-]*);base64,[A-Za-z0-9+/]*={0,2}$/;
  const [, kind, text] = (typeof value === "string" && pattern.exec(value)) || [];
  return kind ?? text;
}

/** Name of a medium for people: Image, Audio, or that of the file. */
export const titleOf = (medium) => ({ image: () => t("Image"), audio: () => t("Audio"), text: () => fromMedium(medium).name })[kindOf(medium)]?.();

/** A text file, folded. */
function textElement(medium) {
  const { name, text } = fromMedium(medium);
  const size = el("small", {}, t("{0} characters", count(text.length)));
  return el("details", { class: "file" }, el("summary", {}, el("span", {}, name), size), el("pre", { tabindex: "0" }, text));
}

/** An element that shows or plays a medium. */
export const mediumElement = (medium) => KINDS[kindOf(medium)].element(medium);

/** The medium as a part of a message. */
export function toPart(medium) {
  if (kindOf(medium) === "image") return { type: "image_url", image_url: { url: medium } };
  if (kindOf(medium) === "text") return { type: "text", text: toPrompt(fromMedium(medium)) };
  const [head, data] = medium.split(",");
  const format = FORMATS[head.slice("data:audio/".length, -";base64".length).replace(/^x-/, "")];
  return { type: "input_audio", input_audio: format ? { data, format } : { data } };
}

/** Bytes of a data URL in base64. */
const bytesOf = (medium) => Math.floor(((medium.length - medium.indexOf(",")) * 3) / 4);

/** Media chosen, pasted or dropped. `hooks` are changed(), failed(message), readDocument(file), which resolves to its `text`, countTokens(text), to null where it cannot count, and contextTokens(). */
export class MediaTray {
  #media = [];
  #enabled = ["text"];
  /** Tokens of text files, once they are counted. */
  #tokens = new Map();
  #hooks;
  #list = byId("media");

  constructor(hooks) {
    this.#hooks = hooks;
    byId("paste-files").checked = remembered("pasteFiles", true);
    byId("paste-files").addEventListener("change", ({ target }) => remember("pasteFiles", target.checked));
    for (const [kind, { name }] of Object.entries(KINDS)) {
      const input = byId(`${name}-file`);
      byId(`add-${name}`).addEventListener("click", () => input.click());
      input.addEventListener("change", async () => {
        await this.#add([...input.files].map((file) => [file, kind]));
        input.value = "";
      });
    }
    addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
    addEventListener("drop", (event) => this.#take(event, event.dataTransfer));
  }

  get isEmpty() {
    return this.#media.length === 0;
  }

  /** Shows the buttons of the kinds that the model reads; media of the others are dropped. */
  enable(modalities) {
    this.#enabled = Object.keys(KINDS).filter((kind) => kind === "text" || modalities.includes(kind));
    for (const [kind, { name }] of Object.entries(KINDS)) byId(`add-${name}`).hidden = !this.#enabled.includes(kind);
    const left = this.#media.filter((medium) => this.#enabled.includes(kindOf(medium)));
    if (left.length === this.#media.length) return;
    this.#media = left;
    this.#render();
  }

  /** Returns the media and forgets them. */
  take() {
    const media = this.#media;
    this.#media = [];
    this.#render();
    return media;
  }

  #take(event, transfer) {
    const kindOfFile = (file) => Object.keys(KINDS).find((kind) => file.type.startsWith(`${kind}/`)) ?? "text";
    const files = [...(transfer?.files ?? [])].map((file) => [file, kindOfFile(file)]);
    if (!files.length) return this.#takeText(event, transfer);
    // A browser would leave the page for a file that is dropped on it.
    event.preventDefault();
    this.#add(files);
  }

  /** Makes a long text that is pasted into the message a file of it. */
  #takeText(event, transfer) {
    const text = event.type === "paste" && event.target === byId("message") ? transfer?.getData("text/plain") : "";
    if (!byId("paste-files").checked || !(text?.length > LONGEST_PASTE)) return;
    event.preventDefault();
    this.#keepText("pasted.txt", text.replaceAll("\r\n", "\n"));
    this.#render();
  }

  /** Adds files, each with the kind that it is to be. */
  async #add(files) {
    for (const [file, kind] of files) {
      const { label, formats } = KINDS[kind];
      if (!this.#enabled.includes(kind)) {
        this.#hooks.failed(t(kind === "image" ? "{0}: the model reads no images" : "{0}: the model reads no audio", file.name));
        continue;
      }
      if (kind === "text") {
        await this.#addText(file);
        continue;
      }
      const type = await typeOf(file);
      const sum = this.#media.reduce((sum, medium) => sum + bytesOf(medium), file.size);
      if (!type?.startsWith(`${kind}/`)) this.#hooks.failed(t("{0} is no {1}: expected {2}", file.name, label, formats));
      else if (sum > MAX_BYTES) this.#hooks.failed(t("{0}: the files of a message have at most {1} bytes", file.name, count(MAX_BYTES)));
      else this.#media.push(await dataUrl(new Blob([file], { type })));
    }
    this.#render();
  }

  async #addText(file) {
    try {
      this.#keepText(file.name, await readText(file, this.#hooks.readDocument));
    } catch (error) {
      this.#hooks.failed(error.message);
    }
  }

  #keepText(name, text) {
    const medium = toMedium(name, text);
    const sum = this.#media.reduce((sum, medium) => sum + bytesOf(medium), bytesOf(medium));
    if (sum > MAX_BYTES) return this.#hooks.failed(t("{0}: the files of a message have at most {1} bytes", name, count(MAX_BYTES)));
    this.#media.push(medium);
    this.#hooks.countTokens(text).then((tokens) => {
      if (tokens === null) return;
      this.#tokens.set(medium, tokens);
      this.#render();
    });
  }

  #remove(index) {
    this.#media.splice(index, 1);
    this.#render();
  }

  #render() {
    const remove = (medium) => t("Remove {0}", KINDS[kindOf(medium)].label);
    const tokens = (medium) => this.#tokens.has(medium) && el("small", { class: "muted" }, sizeText(this.#tokens.get(medium), this.#hooks.contextTokens()));
    const item = (medium, index) => el("li", {}, mediumElement(medium), tokens(medium), iconButton("close", remove(medium), () => this.#remove(index)));
    setChildren(this.#list, this.#media.map(item));
    this.#list.hidden = this.isEmpty;
    this.#hooks.changed();
  }
}

/** MIME type of a file's content; undefined if it cannot be read, too. */
async function typeOf(file) {
  const start = await file.slice(0, 16).arrayBuffer().catch(() => new ArrayBuffer(0));
  return mimeOf(new Uint8Array(start));
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
