// Server-sent events, and lines of JSON.

/** Parser of an event stream that arrives in pieces. */
export class EventParser {
  #rest = "";
  #data = [];

  /** Takes the next piece; returns the data of the events that it completes. */
  push(text) {
    const from = Math.max(0, this.#rest.length - 1);
    this.#rest += text;
    if (!/[\r\n]/.test(this.#rest.slice(from))) return [];
    // A carriage return at the end may be the first half of a line end.
    const held = this.#rest.endsWith("\r") ? 1 : 0;
    const lines = this.#rest.slice(0, this.#rest.length - held).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() + (held ? "\r" : "");
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line) {
    if (line === "") {
      const data = this.#data.splice(0);
      return data.length ? [data.join("\n")] : [];
    }
    const [, name, value] = /^([^:]*):? ?([^]*)$/.exec(line);
    if (name === "data") this.#data.push(value);
    return [];
  }
}

/** Yields the data of the events of a response's body. */
export async function* events(body) {
  const parser = new EventParser();
  for await (const text of pieces(body)) yield* parser.push(text);
}

/** Yields the lines of a response's body that are not empty. */
export async function* lines(body) {
  let rest = "";
  for await (const text of pieces(body)) {
    const complete = (rest + text).split("\n");
    rest = complete.pop();
    yield* complete.filter(Boolean);
  }
  if (rest) yield rest;
}

/** Yields the text of a body as it arrives. */
async function* pieces(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
