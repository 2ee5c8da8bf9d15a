// The messages of the shown conversation.

import { AssistantView } from "./assistant_view.js";
import { byId, setChildren } from "./dom.js";
import { openCalls, path } from "./tree.js";
import { UserView } from "./user_view.js";

/** The list of messages. `actions` are what their buttons do: see main.js. */
export class Thread {
  #actions;
  #list = byId("thread");
  #scroller = byId("scroller");
  /** Views by the id of their first message; of the shown conversation only. */
  #views = new Map();
  #shown = null;
  #following = true;

  constructor(actions) {
    this.#actions = actions;
    // Replies grow when they are rendered.
    new ResizeObserver(() => this.#following && this.scrollToEnd()).observe(this.#list);
    this.#scroller.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
      this.#following = scrollHeight - scrollTop - clientHeight < 60;
    });
  }

  /** Shows the selected messages of a conversation with a model of this context length, if it is known. */
  render(conversation, isRunning, contextTokens, progress) {
    if (this.#shown !== conversation.id) this.#open(conversation);
    const nodes = path(conversation);
    const context = { conversation, isRunning, contextTokens, open: openCalls(nodes), last: nodes.at(-1), progress };
    const groups = grouped(nodes);
    setChildren(this.#list, groups.map((group) => this.#view(group, context).element));
    const shown = new Set(groups.map(([first]) => first.id));
    for (const id of this.#views.keys()) if (!shown.has(id)) this.#views.delete(id);
    if (this.#following) this.scrollToEnd();
  }

  /** Follows the end of the conversation again. */
  scrollToEnd() {
    this.#following = true;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #open(conversation) {
    this.#shown = conversation.id;
    this.#views.clear();
    this.#following = true;
  }

  #view(group, context) {
    const [first] = group;
    const View = first.role === "user" ? UserView : AssistantView;
    const view = this.#views.get(first.id) ?? new View(this.#actions);
    this.#views.set(first.id, view);
    view.update(group, context);
    return view;
  }
}

/** A message of the user alone, or replies with the results of their calls. */
function grouped(nodes) {
  const groups = [];
  for (const node of nodes) {
    const before = groups.at(-1)?.[0].role;
    if (node.role === "user" || before === undefined || before === "user") groups.push([node]);
    else groups.at(-1).push(node);
  }
  return groups;
}
