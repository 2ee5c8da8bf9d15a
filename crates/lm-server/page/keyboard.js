// Keys of the whole page.

import { closePanel } from "./panels.js";

/** Escape closes a panel or stops the reply; Ctrl+Shift+O begins a conversation. */
export function startKeyboard({ startNew, stop, isRunning }) {
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, shiftKey } = event;
    if (key === "Escape" && !document.querySelector("dialog[open]")) {
      if (closePanel()) return event.preventDefault();
      if (isRunning()) stop();
    }
    if ((ctrlKey || metaKey) && shiftKey && key.toLowerCase() === "o") {
      event.preventDefault();
      startNew();
    }
  });
}
