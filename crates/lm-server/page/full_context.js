// A conversation that fills the context: its oldest messages are left out, or a new conversation begins with its summary.

import { toMessages } from "./tree.js";

/** Code of the API's error. */
export const CONTEXT_FULL = "context_length_exceeded";

/** Request of a summary. */
const SUMMARISE =
  "Summarise the conversation above, so that we can go on from the summary alone: what I want, what was done and decided, names and numbers that are needed further on, and what is left to do. Write the summary alone.";

/** Maximum length of a summary, in tokens; at most a quarter of the context. */
const MAX_TOKENS = 1024;

/** Request of a summary of messages; of a conversation that does not fit the context as far as it does. */
export function summaryRequest(nodes, { model, system }, contextTokens) {
  const messages = [...toMessages(nodes, system), { role: "user", content: SUMMARISE }];
  const most = Math.min(MAX_TOKENS, Math.floor((contextTokens ?? 4096) / 4));
  return { ...(model && { model }), messages, max_tokens: most, temperature: 0, truncation: "auto", reasoning_effort: "none" };
}

/** First message of the conversation that goes on from a summary, with the question that did not fit. */
export const continuation = (summary, question) => `This is a summary of our conversation so far:\n\n${summary.trim()}\n\n${question}`;
