// The page: puts the parts together.

import { Api } from "./api.js";
import { Chats } from "./chats.js";
import { Composer } from "./composer.js";
import { byId, el } from "./dom.js";
import { continuation } from "./full_context.js";
import { startKeyboard } from "./keyboard.js";
import { ModelsPanel } from "./models_panel.js";
import { announce, askKey, during, leaveSidebar, notify, startPanels } from "./panels.js";
import { remember, remembered } from "./remember.js";
import { Runner } from "./runner.js";
import { SettingsPanel, inherited } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { showContext } from "./stats.js";
import { startLanguage, t } from "./text.js";
import { startTheme } from "./theme.js";
import { Thread } from "./thread.js";
import { TOOLS, addServerTools } from "./tools.js";
import { exportFile, importFile } from "./transfer.js";
import { append, newConversation, path, remove, select } from "./tree.js";

/** Shortest time between two saves of a growing reply. */
const SAVE_MS = 1000;

const api = new Api(askKey);
const conversations = new Chats(api, notify);
let models = [];
const modelsPanel = new ModelsPanel(api, { changed: loadModels, failed: notify });
let current = newConversation(inherited(remembered("settings")));
/** A frame is under way, and another one is wanted after it. */
let [drawing, wanted] = [false, false];
let saved = 0;
/** The page is being closed: the failure of a request that is cut by it is not kept. */
let closing = false;

const runner = new Runner(api, {
  contextTokens,
  changed(conversation) {
    if (performance.now() - saved > SAVE_MS) save(conversation);
    if (conversation === current) draw();
  },
  ended(conversation, node) {
    save(conversation);
    if (conversation === current) draw();
    if (isUnloaded(node.model)) loadModels();
    announce(node.state === "error" ? t("Error: {0}", node.error) : endText(node));
  },
});

/** Context of a model, in tokens; null if it cannot be loaded. Counting tokens loads it. */
async function contextTokens(name) {
  const find = () => models.find(({ id }) => id === (name || models[0]?.id))?.max_model_len ?? null;
  if (find() === null) {
    await api.countTokens("", name);
    await loadModels();
  }
  return find();
}

/** A model that was loaded after the models were listed: its context was not known then. */
const isUnloaded = (name) => models.some(({ id, max_model_len: tokens }) => id === name && tokens === null);

const endText = ({ content, calls }) =>
  calls.length ? t("The model calls {0}.", calls.map(({ name }) => name).join(", ")) : t("Reply complete. {0}", content.slice(0, 300));

const thread = new Thread({
  api,
  select: (node) => change(() => select(current, node)),
  remove: (node) => change(() => remove(current, node)),
  edit: (node, text) => say(text, node.media, node.parent),
  regenerate: (node) => go(runner.regenerate(current, node)),
  extend: (node) => go(runner.extend(current, node)),
  decide(call, decision) {
    composer.focus();
    go(runner.decide(current, call, decision));
  },
  leaveOut(node) {
    settingsChanged({ truncates: true });
    this.retry(node);
  },
  summarise,
  retry(node) {
    remove(current, node);
    go(runner.advance(current));
  },
});

const composer = new Composer({
  send: say,
  failed: notify,
  readDocument: (file) => api.readDocument(file),
  countTokens: (text) => api.countTokens(text, byId("model").value),
  contextTokens: () => models.find(({ id }) => id === byId("model").value)?.max_model_len,
  stop: () => runner.stop(current),
  toggleTools: () => settingsChanged({ tools: current.settings.tools.length ? [] : TOOLS.map(({ name }) => name) }),
  toggleThinking: () => settingsChanged({ thinking: !current.settings.thinking }),
});

const settings = new SettingsPanel(() => settingsChanged({}));

const sidebar = new Sidebar(conversations, {
  open: ({ id }) => withLoaded(id, show),
  rename: ({ id }, title) => withLoaded(id, (conversation) => save(Object.assign(conversation, { title }))),
  exportOne: ({ id }) => withLoaded(id, (conversation) => exportFile([conversation], "lm-conversation.json")),
  async remove(conversation) {
    runner.stop(conversation);
    await conversations.delete(conversation.id);
    if (conversation === current) startNew();
    sidebar.render(current.id);
  },
});

/** Does something with a conversation and its messages. */
async function withLoaded(id, action) {
  try {
    await action(await conversations.load(id));
  } catch (error) {
    notify(t("The conversation cannot be read: {0}", error.message));
  }
}

/** Shows what other programs have changed, such as `lm chat`. */
async function refresh() {
  const changed = await conversations.refresh((conversation) => runner.isRunning(conversation));
  if (changed.includes(current.id)) await withLoaded(current.id, show);
  else sidebar.render(current.id);
}

/** Adds a message of the user, at the end or as another branch after `parent`, and lets the model answer. */
function say(text, media = [], parent) {
  if (runner.isRunning(current)) return;
  if (parent === undefined) runner.denyOpen(current);
  append(current, parent === undefined ? (path(current).at(-1)?.id ?? null) : parent, { role: "user", content: text, media });
  thread.scrollToEnd();
  go(runner.advance(current));
}

/** Writes a summary of a conversation that fills the context into the message field of a new one, with the question that had no room. */
async function summarise(node) {
  const conversation = current;
  const nodes = path(conversation);
  const last = nodes.findLastIndex(({ role }) => role === "user");
  try {
    const summary = await during(t("The conversation is being summarised: the message field of a new one will have the summary."), () => runner.summarise(conversation, nodes.slice(0, last)));
    startNew();
    composer.fill(continuation(summary, nodes[last].content));
  } catch (error) {
    notify(t("The conversation cannot be summarised: {0}", error.message));
  }
}

/** Shows the start and the end of an action. */
async function go(action) {
  const conversation = current;
  save(conversation);
  draw();
  await action;
  save(conversation);
  draw();
}

function change(edit) {
  edit();
  save(current);
  draw();
}

function settingsChanged(values) {
  Object.assign(current.settings, values);
  remember("settings", inherited(current.settings));
  if (path(current).length) save(current);
  settings.show(current.settings);
  draw();
}

async function save(conversation) {
  if (closing) return;
  saved = performance.now();
  if (Object.keys(conversation.nodes).length || conversations.get(conversation.id)) await conversations.save(conversation);
  sidebar.render(current.id);
}

function show(conversation) {
  current = conversation;
  remember("current", conversation.id);
  checkModel();
  settings.show(conversation.settings);
  leaveSidebar();
  render();
  sidebar.render(conversation.id);
  composer.focus();
}

/** Forgets the model of a conversation if this server does not have it: a file may come from another one. */
function checkModel() {
  const { settings } = current;
  if (models.length && !models.some(({ id }) => id === settings.model)) settings.model = "";
}

function startNew() {
  show(newConversation(inherited(remembered("settings"))));
}

/** Draws at most once a frame; less often if drawing takes long. */
function draw() {
  wanted = true;
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    wanted = false;
    const began = performance.now();
    render();
    const cost = performance.now() - began;
    setTimeout(drawn, cost > 8 ? cost * 3 : 0);
  });
}

function drawn() {
  drawing = false;
  if (wanted) draw();
}

function render() {
  const isRunning = runner.isRunning(current);
  const nodes = path(current);
  document.body.classList.toggle("empty", nodes.length === 0);
  byId("conversation-title").hidden = nodes.length === 0;
  byId("conversation-title").textContent = current.title;
  document.title = current.title ? `${current.title} – lm` : "lm";
  byId("model").value = current.settings.model || (models[0]?.id ?? "");
  byId("empty-model").textContent = byId("model").value;
  const model = models.find(({ id }) => id === byId("model").value);
  // A model that is not loaded yet may think.
  composer.update(current.settings, isRunning, { modalities: model?.input_modalities ?? [], canThink: model?.thinking !== false });
  thread.render(current, isRunning, model?.max_model_len, (node) => runner.progress(node));
  showContext(byId("context"), byId("context-text"), nodes, model?.max_model_len);
}

async function loadModels() {
  try {
    const { data, downloads } = await api.models();
    models = data;
    modelsPanel.show(models, downloads);
  } catch (error) {
    notify(t("The models cannot be listed: {0}", error.message));
  }
  byId("model").replaceChildren(...models.map(({ id }) => el("option", { value: id }, id)));
  checkModel();
  render();
}

async function loadTools() {
  try {
    settings.addServerTools(addServerTools(api, await api.tools()));
  } catch (error) {
    notify(t("The tools of the server cannot be listed: {0}", error.message));
  }
}

async function loadPresets() {
  try {
    settings.addPresets(await api.presets());
  } catch (error) {
    notify(t("The presets of the server cannot be listed: {0}", error.message));
  }
}

async function importFiles({ target }) {
  for (const file of target.files) {
    try {
      const found = await importFile(file);
      for (const conversation of found) await conversations.save(conversation);
      if (found.length) show(found[0]);
      announce(t("{0} conversations imported.", found.length));
    } catch (error) {
      notify(t("Import: {0}", error.message));
    }
  }
  target.value = "";
}

function close() {
  for (const conversation of conversations.list()) if (runner.isRunning(conversation)) conversations.save(conversation, true);
  closing = true;
}

function suggestion({ target }) {
  const button = target.closest("button");
  if (!button) return;
  const { tool } = button.dataset;
  if (tool && !current.settings.tools.includes(tool)) {
    // For this conversation: the next one begins without it.
    current.settings.tools = [...current.settings.tools, tool];
    settings.show(current.settings);
  }
  say(button.dataset.text);
}

startLanguage();
startTheme();
startPanels();
startKeyboard({ startNew, stop: () => runner.stop(current), isRunning: () => runner.isRunning(current) });
byId("new-chat").addEventListener("click", startNew);
byId("new-chat-top").addEventListener("click", startNew);
byId("model").addEventListener("change", ({ target }) => settingsChanged({ model: target.value }));
byId("suggestions").addEventListener("click", suggestion);
byId("export-all").addEventListener("click", () => conversations.all().then((all) => exportFile(all, "lm-conversations.json"), ({ message }) => notify(message)));
byId("import").addEventListener("click", () => byId("import-file").click());
byId("import-file").addEventListener("change", importFiles);
addEventListener("pagehide", close);
addEventListener("focus", refresh);
addEventListener("pageshow", () => (closing = false));
await conversations.open();
if (conversations.isKept) byId("kept-in").textContent = t("Conversations are kept by the server.");
await loadTools(); // A conversation may have them.
loadPresets();
if (conversations.get(remembered("current"))) await withLoaded(remembered("current"), show);
else show(current);
await loadModels();
document.body.dataset.ready = "true";
