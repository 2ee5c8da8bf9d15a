// Pictures of the message that is being written.

import { byId, el, iconButton, setChildren } from "./dom.js";

/** Largest file, and largest sum of the files of a message: base64 adds a third, and the server takes bodies of 16 MiB. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Returns true for a picture as messages keep it: a data URL. */
export const isPicture = (value) => typeof value === "string" && /^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]*={0,2}$/.test(value);

/** Bytes of a data URL in base64. */
const bytesOf = (picture) => Math.floor(((picture.length - picture.indexOf(",")) * 3) / 4);

/** An element that shows a picture. */
export const pictureElement = (picture) => el("img", { src: picture, alt: "Picture" });

/** Pictures chosen, pasted or dropped. `hooks` are changed() and failed(message). */
export class PictureTray {
  #pictures = [];
  #enabled = false;
  #hooks;
  #button = byId("add-picture");
  #input = byId("picture-file");
  #list = byId("pictures");

  constructor(hooks) {
    this.#hooks = hooks;
    this.#button.addEventListener("click", () => this.#input.click());
    this.#input.addEventListener("change", async () => {
      await this.#add(this.#input.files);
      this.#input.value = "";
    });
    addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    addEventListener("dragover", (event) => this.#enabled && event.preventDefault());
    addEventListener("drop", (event) => this.#take(event, event.dataTransfer));
  }

  get isEmpty() {
    return this.#pictures.length === 0;
  }

  /** Shows the button if the model reads pictures; without one, the pictures are dropped. */
  enable(enabled) {
    this.#enabled = enabled;
    this.#button.hidden = !enabled;
    if (!enabled && !this.isEmpty) this.take();
  }

  /** Returns the pictures and forgets them. */
  take() {
    const pictures = this.#pictures;
    this.#pictures = [];
    this.#render();
    return pictures;
  }

  #take(event, transfer) {
    const files = [...(transfer?.files ?? [])].filter(({ type }) => type.startsWith("image/"));
    if (!this.#enabled || !files.length) return;
    event.preventDefault();
    this.#add(files);
  }

  async #add(files) {
    for (const file of files) {
      const sum = this.#pictures.reduce((sum, picture) => sum + bytesOf(picture), file.size);
      const picture = sum <= MAX_BYTES && (await dataUrl(file));
      if (!picture) this.#hooks.failed(`${file.name}: the pictures of a message have at most ${MAX_BYTES} bytes`);
      else if (!isPicture(picture)) this.#hooks.failed(`${file.name} is no picture`);
      else this.#pictures.push(picture);
    }
    this.#render();
  }

  #remove(index) {
    this.#pictures.splice(index, 1);
    this.#render();
  }

  #render() {
    const item = (picture, index) => el("li", {}, pictureElement(picture), iconButton("close", "Remove picture", () => this.#remove(index)));
    setChildren(this.#list, this.#pictures.map(item));
    this.#list.hidden = this.isEmpty;
    this.#hooks.changed();
  }
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
