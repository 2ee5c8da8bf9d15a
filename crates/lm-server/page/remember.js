// Small values in the browser's local storage.

/** Reads a value of the local storage; `otherwise` if there is none, or it is unreadable. */
export function remembered(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`lm.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Writes a value of the local storage; without one, it is forgotten with the page. */
export function remember(name, value) {
  try {
    localStorage.setItem(`lm.${name}`, JSON.stringify(value));
  } catch {
    // The browser forbids it, or it is full.
  }
}
