// Switch between the branches that begin with a message: ‹ 2/3 ›.

import { el, iconButton } from "./dom.js";
import { t } from "./text.js";
import { siblings } from "./tree.js";

/** Switch of a message; nothing if it has no alternatives. */
export class BranchSwitch {
  element = el("span", { class: "branches", role: "group", "aria-label": t("Branches") });
  #select;
  #shown = "";

  constructor(select) {
    this.#select = select;
  }

  update(node, { conversation, isRunning }) {
    const all = siblings(conversation, node);
    const index = all.indexOf(node);
    const key = `${node.id} ${index} ${all.length} ${isRunning}`;
    if (key === this.#shown) return;
    this.#shown = key;
    this.element.hidden = all.length < 2;
    const step = (name, label, to) => iconButton(name, label, () => this.#select(all[to]), { disabled: isRunning || !all[to] });
    const place = el("span", {}, `${index + 1}/${all.length}`);
    this.element.replaceChildren(step("left", t("Previous branch"), index - 1), place, step("right", t("Next branch"), index + 1));
  }
}
