// Token counts and speeds, as text.

import { count, t } from "./text.js";

/** A time such as `0.4 s`. */
export const seconds = (ms) => `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;

/** Line under a turn: tokens, speed, time to first token. */
export function statsText(replies) {
  const known = replies.map(({ stats }) => stats).filter((stats) => stats?.firstMs != null);
  if (!known.length) return "";
  const output = known.reduce((sum, stats) => sum + (stats.output ?? 0), 0);
  const leftOut = Math.max(...replies.map(({ leftOut = 0 }) => leftOut));
  const parts = [output && t(output === 1 ? "{0} token" : "{0} tokens", count(output)), speed(known), t("first after {0}", seconds(known[0].firstMs)), leftOut > 0 && t(leftOut === 1 ? "without the oldest message" : "without the {0} oldest messages", count(leftOut))];
  return parts.filter(Boolean).join(" · ");
}

/** Shortest time that gives a speed: events that arrive together have no time between them. */
const SHORTEST_MS = 50;

/** Tokens per second of the tokens after the first one. */
function speed(known) {
  const counted = known.filter(({ output, decodeMs }) => output > 1 && decodeMs > 0);
  const tokens = counted.reduce((sum, { output }) => sum + output - 1, 0);
  const ms = counted.reduce((sum, { decodeMs }) => sum + decodeMs, 0);
  if (!tokens || ms < SHORTEST_MS) return null;
  const rate = (tokens * 1000) / ms;
  return t("{0} tokens/s", rate.toFixed(rate < 10 ? 1 : 0));
}

/** Progress of a prompt that takes more than a second, such as `Reading the prompt: 1,024 of 6,000 tokens, 12 s left`. */
export function progressText(progress) {
  const { total, cache, processed, time_ms: ms } = progress ?? {};
  if (!progress || processed >= total || processed <= cache) return "";
  const left = (ms * (total - processed)) / (processed - cache);
  if (ms + left < 1000) return "";
  return t("Reading the prompt: {0} of {1} tokens, {2} left", count(processed), count(total), seconds(left));
}

/** Details of a turn, for its tooltip. */
export function statsTitle(replies) {
  const last = replies.at(-1);
  const { prompt, cached } = last?.stats ?? {};
  const tokens = prompt == null ? "" : `\n${t("prompt: {0} tokens, {1} of them cached", count(prompt), count(cached))}`;
  return last ? t("model: {0}", last.model) + tokens : "";
}

/** True for a reply that ends where the context does. */
export const fillsContext = ({ stats }, contextTokens) => Boolean(contextTokens && stats?.total >= contextTokens);

/** Shows how much of the context the last reply has used. */
export function showContext(meter, text, nodes, contextTokens) {
  const total = nodes.findLast(({ role, stats }) => role === "assistant" && stats?.total)?.stats.total ?? 0;
  meter.hidden = text.hidden = !total || !contextTokens;
  if (meter.hidden) return;
  meter.max = contextTokens;
  meter.high = contextTokens * 0.9;
  meter.value = total;
  text.textContent = t("{0} of {1} tokens", count(total), count(contextTokens));
}
