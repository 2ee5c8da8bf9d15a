// Arithmetic of the demo tool `calculate`: the rules and the errors of lm-tools' Rust version.

const MAX_DEPTH = 64;
const SIGNIFICANT_DIGITS = 15;

/** Evaluates numbers, `+ - * / % ^`, signs and parentheses; `×`, `x` and `÷` are read as `*`, `*` and `/`. Throws what was expected, and where. */
export function evaluate(expression) {
  const parser = new Parser(expression);
  const value = parser.sum();
  if (parser.peek() !== undefined) throw new Error(`expected an operator or the end ${parser.here()}`);
  if (!Number.isFinite(value)) throw new Error("the result is not a finite number");
  // Rounding to fewer digits than an integer has would change it.
  return Number.isInteger(value) ? value || 0 : Number(value.toPrecision(SIGNIFICANT_DIGITS));
}

class Parser {
  #characters;
  #at = 0;
  #depth = 0;

  constructor(text) {
    this.#characters = [...text];
  }

  /** product (("+" | "-") product)* */
  sum() {
    let value = this.#product();
    for (;;) {
      const operator = this.#take("+-−");
      if (!operator) return value;
      value = operator === "+" ? value + this.#product() : value - this.#product();
    }
  }

  /** signed (("*" | "/" | "%") signed)* */
  #product() {
    let value = this.#signed();
    for (;;) {
      const operator = this.#take("*×x/÷%");
      if (!operator) return value;
      const right = this.#signed();
      value = "*×x".includes(operator) ? value * right : operator === "%" ? value % right : value / right;
    }
  }

  /** ("+" | "-") signed | power; so `-2^2` is -4 */
  #signed() {
    const sign = this.#take("+-−");
    if (!sign) return this.#power();
    const value = this.#nested(() => this.#signed());
    return sign === "+" ? value : -value;
  }

  /** atom ("^" signed)? */
  #power() {
    const base = this.#atom();
    return this.#take("^") ? base ** this.#nested(() => this.#signed()) : base;
  }

  /** number | "(" sum ")" */
  #atom() {
    if (!this.#take("(")) return this.#number();
    const value = this.#nested(() => this.sum());
    if (!this.#take(")")) throw new Error(`expected \`)\` ${this.here()}`);
    return value;
  }

  #number() {
    const place = this.here();
    const start = this.#at;
    while (/^[0-9.]$/.test(this.#characters[this.#at] ?? "")) this.#at += 1;
    const text = this.#characters.slice(start, this.#at).join("");
    if (!/^(\d+\.?\d*|\.\d+)$/.test(text)) throw new Error(`expected a number ${place}`);
    return Number(text);
  }

  #nested(rule) {
    if (this.#depth === MAX_DEPTH) throw new Error(`the expression is nested deeper than ${MAX_DEPTH} levels`);
    this.#depth += 1;
    const value = rule();
    this.#depth -= 1;
    return value;
  }

  #take(anyOf) {
    const next = this.peek();
    if (next === undefined || !anyOf.includes(next)) return undefined;
    this.#at += 1;
    return next;
  }

  /** Next character that is not white space. */
  peek() {
    while (/^\s$/.test(this.#characters[this.#at] ?? "")) this.#at += 1;
    return this.#characters[this.#at];
  }

  here() {
    const next = this.peek();
    return `at character ${this.#at + 1}, found ${next === undefined ? "the end" : `\`${next}\``}`;
  }
}
