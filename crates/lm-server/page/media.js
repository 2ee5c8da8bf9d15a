// Images and audio of the message that is being written.

import { byId, el, iconButton, setChildren } from "./dom.js";

/** Largest file, and largest sum of the files of a message: base64 adds a third, and the server takes bodies of 16 MiB. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Kinds of media by their MIME types, which are also the names of the model's modalities. */
const KINDS = {
  image: { name: "image", formats: "PNG, JPEG, WebP, GIF or BMP", element: (url) => el("img", { src: url, alt: "Image" }) },
  audio: { name: "audio", formats: "WAV, FLAC, MP3 or Ogg Vorbis", element: (url) => el("audio", { src: url, controls: true, "aria-label": "Audio" }) },
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

/** Kind of an image or an audio clip as messages keep it: a data URL. Undefined for any other value. */
export function kindOf(value) {
  const [, kind] = (typeof value === "string" && /^data:(image|audio)\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]*={0,2}$/.exec(value)) || [];
  return kind;
}

/** Name of a medium for people: Image, Audio. */
export const titleOf = (medium) => (kindOf(medium) === "audio" ? "Audio" : "Image");

/** An element that shows or plays a medium. */
export const mediumElement = (medium) => KINDS[kindOf(medium)].element(medium);

/** The medium as a part of a message. */
export function toPart(medium) {
  if (kindOf(medium) === "image") return { type: "image_url", image_url: { url: medium } };
  const [head, data] = medium.split(",");
  const format = FORMATS[head.slice("data:audio/".length, -";base64".length).replace(/^x-/, "")];
  return { type: "input_audio", input_audio: format ? { data, format } : { data } };
}

/** Bytes of a data URL in base64. */
const bytesOf = (medium) => Math.floor(((medium.length - medium.indexOf(",")) * 3) / 4);

/** Media chosen, pasted or dropped. `hooks` are changed() and failed(message). */
export class MediaTray {
  #media = [];
  #enabled = [];
  #hooks;
  #list = byId("media");

  constructor(hooks) {
    this.#hooks = hooks;
    for (const [kind, { name }] of Object.entries(KINDS)) {
      const input = byId(`${name}-file`);
      byId(`add-${name}`).addEventListener("click", () => input.click());
      input.addEventListener("change", async () => {
        await this.#add([...input.files].map((file) => [file, kind]));
        input.value = "";
      });
    }
    addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    addEventListener("dragover", (event) => this.#enabled.length && event.preventDefault());
    addEventListener("drop", (event) => this.#take(event, event.dataTransfer));
  }

  get isEmpty() {
    return this.#media.length === 0;
  }

  /** Shows the buttons of the kinds that the model reads; media of the others are dropped. */
  enable(modalities) {
    this.#enabled = Object.keys(KINDS).filter((kind) => modalities.includes(kind));
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
    const withKind = (file) => [file, this.#enabled.find((kind) => file.type.startsWith(`${kind}/`))];
    const files = [...(transfer?.files ?? [])].map(withKind).filter(([, kind]) => kind);
    if (!files.length) return;
    event.preventDefault();
    this.#add(files);
  }

  /** Adds files, each with the kind that it is to be. */
  async #add(files) {
    for (const [file, kind] of files) {
      const { name, formats } = KINDS[kind];
      const type = await typeOf(file);
      const sum = this.#media.reduce((sum, medium) => sum + bytesOf(medium), file.size);
      if (!type?.startsWith(`${kind}/`)) this.#hooks.failed(`${file.name} is no ${name}: expected ${formats}`);
      else if (sum > MAX_BYTES) this.#hooks.failed(`${file.name}: the files of a message have at most ${MAX_BYTES} bytes`);
      else this.#media.push(await dataUrl(new Blob([file], { type })));
    }
    this.#render();
  }

  #remove(index) {
    this.#media.splice(index, 1);
    this.#render();
  }

  #render() {
    const remove = (medium) => `Remove ${KINDS[kindOf(medium)].name}`;
    const item = (medium, index) => el("li", {}, mediumElement(medium), iconButton("close", remove(medium), () => this.#remove(index)));
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
