// Elements. Text enters the page as text nodes; the only markup is that of the server's renderer, which its sanitiser has passed (lm-markdown).

/** Creates an element: properties that begin with `on` are listeners, others are attributes; children are nodes or text. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) set(element, name, value);
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

function set(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value != null) element.setAttribute(name, value);
}

/** Creates an icon of the sprite in index.html. */
export function icon(name) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const use = document.createElementNS(namespace, "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** Creates a button that shows an icon; its label is for screen readers and the tooltip. */
export function iconButton(name, label, onclick, properties = {}) {
  return el("button", { type: "button", class: "icon-button", title: label, "aria-label": label, onclick, ...properties }, icon(name));
}

/** Fills an element with HTML of `/page/render`, and of nothing else. */
export function setSanitised(element, html) {
  element.innerHTML = html;
}

/** Finds the element of an id. */
export const byId = (id) => document.getElementById(id);

/** Replaces the children of an element, unless they are these nodes already: focus and scroll positions stay. */
export function setChildren(element, nodes) {
  const same = element.childNodes.length === nodes.length && nodes.every((node, index) => node === element.childNodes[index]);
  if (!same) element.replaceChildren(...nodes);
}

/** Copies text to the clipboard; pages of unencrypted addresses have no `navigator.clipboard`. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Creates a button that copies a text, and says for a moment that it has. */
export function copyButton(label, text) {
  const button = iconButton("copy", label, async () => {
    await copyText(text());
    button.replaceChildren(icon("check"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}
