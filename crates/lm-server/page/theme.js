// Colours: those of the system, or the user's choice.

import { byId } from "./dom.js";
import { remember, remembered } from "./remember.js";

const NAMES = ["system", "light", "dark"];

/** Applies the remembered theme, and lets its buttons change it. */
export function startTheme() {
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    for (const name of NAMES) byId(`theme-${name}`).setAttribute("aria-pressed", name === theme);
  };
  const known = remembered("theme", "system");
  apply(NAMES.includes(known) ? known : "system");
  for (const name of NAMES) {
    byId(`theme-${name}`).addEventListener("click", () => {
      remember("theme", name);
      apply(name);
    });
  }
}
