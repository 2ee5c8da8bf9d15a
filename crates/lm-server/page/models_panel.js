// The models of the server: their sizes, what is in memory, and downloads of others.

import { byId, el } from "./dom.js";
import { t } from "./text.js";

/** Size in the units of a file manager. */
export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1000 ** power).toFixed(power > 1 ? 1 : 0)} ${units[power]}`;
}

/** Panel of the models. `hooks` are changed(), after a change of the models, and failed(message). */
export class ModelsPanel {
  #api;
  #hooks;
  #busy = new Set();
  #models = [];

  constructor(api, hooks) {
    this.#api = api;
    this.#hooks = hooks;
    byId("download-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#download(byId("download-name").value.trim());
    });
  }

  /** Shows the models, and the field for downloads if the server downloads. */
  show(models, canDownload) {
    this.#models = models;
    byId("download-form").hidden = !canDownload;
    byId("model-list").replaceChildren(...models.map((model) => this.#row(model)));
  }

  #row({ id, bytes, loaded }) {
    const isBusy = this.#busy.has(id);
    const [label, title] = loaded ? [t("Unload"), t("Unload {0}", id)] : [t("Load"), t("Load {0}", id)];
    const button = el("button", { type: "button", class: "button", "aria-label": title, disabled: isBusy, onclick: () => this.#switch(id, !loaded) }, isBusy ? "…" : label);
    const state = [sizeText(bytes), loaded && t("in memory")].filter(Boolean).join(", ");
    return el("li", { class: "row" }, el("span", { class: "grow" }, id, el("small", {}, state)), button);
  }

  async #switch(id, isLoad) {
    await this.#during(id, () => this.#api.loadModel(id, isLoad));
  }

  async #during(id, work) {
    this.#busy.add(id);
    this.show(this.#models, !byId("download-form").hidden);
    await work().catch(({ message }) => this.#hooks.failed(`${id}: ${message}`));
    this.#busy.delete(id);
    await this.#hooks.changed();
  }

  async #download(name) {
    if (!name || this.#busy.has(name)) return;
    const [bar, text] = [byId("download-progress"), byId("download-text")];
    bar.hidden = false;
    byId("download-button").disabled = true;
    await this.#during(name, async () => {
      for await (const { status, total, completed, error } of this.#api.pull(name)) {
        if (error) throw new Error(error);
        if (total) Object.assign(bar, { max: total, value: completed });
        text.textContent = total ? t("{0}: {1} of {2}", status, sizeText(completed), sizeText(total)) : status;
      }
      text.textContent = t("{0} is here", name);
      byId("download-name").value = "";
    });
    if (this.#models.every(({ id }) => id !== name)) text.textContent = "";
    bar.hidden = true;
    bar.removeAttribute("value");
    byId("download-button").disabled = false;
  }
}
