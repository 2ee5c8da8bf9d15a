// Drawers, the dialog for the key, and messages of the page.

import { byId, el, icon, iconButton } from "./dom.js";
import { t } from "./text.js";

const narrow = matchMedia("(max-width: 800px)");

/** Shows or hides the list of conversations: a drawer over the page where that is narrow. */
export function toggleSidebar(isOpen = !isSidebarOpen()) {
  document.body.classList.toggle(narrow.matches ? "sidebar-open" : "sidebar-closed", narrow.matches ? isOpen : !isOpen);
  updateSidebar();
}

const isSidebarOpen = () => (narrow.matches ? document.body.classList.contains("sidebar-open") : !document.body.classList.contains("sidebar-closed"));

function updateSidebar() {
  const isOpen = isSidebarOpen();
  byId("sidebar").inert = !isOpen;
  byId("toggle-sidebar").setAttribute("aria-expanded", isOpen);
  byId("scrim").hidden = !(narrow.matches && isOpen);
}

/** Shows or hides the settings. */
export function toggleSettings(isOpen = byId("settings").hidden) {
  byId("settings").hidden = !isOpen;
  byId("toggle-settings").setAttribute("aria-expanded", isOpen);
  if (isOpen) byId("close-settings").focus();
  else byId("toggle-settings").focus();
}

/** Closes the panel that is over the page; returns false if there is none. */
export function closePanel() {
  if (!byId("settings").hidden) toggleSettings(false);
  else if (narrow.matches && isSidebarOpen()) toggleSidebar(false);
  else return false;
  return true;
}

/** Closes the drawer of conversations after a choice, where it covers the page. */
export function leaveSidebar() {
  if (narrow.matches) toggleSidebar(false);
}

/** Lets the buttons of the panels work. */
export function startPanels() {
  byId("toggle-sidebar").addEventListener("click", () => toggleSidebar());
  byId("close-sidebar").addEventListener("click", () => toggleSidebar(false));
  byId("scrim").addEventListener("click", () => toggleSidebar(false));
  byId("toggle-settings").addEventListener("click", () => toggleSettings());
  byId("close-settings").addEventListener("click", () => toggleSettings(false));
  narrow.addEventListener("change", updateSidebar);
  updateSidebar();
}

/** Asks for the API key; resolves to null if the user gives none. */
export function askKey(message) {
  const [dialog, input] = [byId("key-dialog"), byId("key")];
  byId("key-error").textContent = message;
  input.value = "";
  return new Promise((resolve) => {
    const close = (key) => {
      form.removeEventListener("submit", submit);
      dialog.removeEventListener("cancel", cancel);
      byId("key-cancel").removeEventListener("click", cancel);
      dialog.close();
      resolve(key);
    };
    const submit = (event) => {
      event.preventDefault();
      if (input.value) close(input.value);
    };
    const cancel = () => close(null);
    const form = byId("key-form");
    form.addEventListener("submit", submit);
    dialog.addEventListener("cancel", cancel);
    byId("key-cancel").addEventListener("click", cancel);
    dialog.showModal();
    input.focus();
  });
}

/** Shows a message that can be closed. */
export function notify(text) {
  if ([...byId("notices").children].some((notice) => notice.textContent === text)) return;
  const notice = el("div", { class: "notice", role: "alert" }, icon("warning"), el("span", {}, text));
  notice.append(iconButton("close", t("Close message"), () => notice.remove()));
  byId("notices").append(notice);
}

/** Shows what is being done until it is done. */
export async function during(text, work) {
  const notice = el("div", { class: "notice info", role: "status" }, el("span", {}, text));
  byId("notices").append(notice);
  try {
    return await work();
  } finally {
    notice.remove();
  }
}

/** Lets screen readers say something. */
export function announce(text) {
  byId("announcer").textContent = text;
}
