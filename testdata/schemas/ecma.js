// Outcomes of regular expressions by an engine of ECMA-262, for the tests of patterns.
//
//     node testdata/schemas/ecma.js 600 1 testdata/schemas/ecma.json
//
// The arguments are the number of random patterns, their seed and the file to write. Patterns are searched for with the flag `u`; those that are a
// syntax error with it are searched for without it, and marked. An outcome is a digit for each text.

const TEXTS = [
  "", "a", "b", "A", "ab", "ba", "aa", "aab", "aba", "abab", "abba", "aXa", "abc", "xyzzy", "a b", " ", "a ", "foo bar", "word!",
  "_", "a_b", "1", "12", "a1", "1a", "-", ".", "a-b", "a.b", "{", "}", "{a}", "]", ":]", "a]", "[", "/", "a/b", "''", "'a'", "a,b",
  "a\n", "\n", "a\nb", "\r", "\t", "a\r\nb", "\u2028", "a\u2029", "\u00a0", "\ufeff", "\u0085", "\u001c", "\u180e", "\u200b", "\u3000",
  "\u00e9", "gr\u00f6\u00dfe", "\u00df", "\u0663", "\u212a", "\u017f", "\u03a3", "\u03c3", "\u{1f600}", "a\u{1f600}", "\u0301", "e\u0301",
];

const CHOSEN = [
  "\\d", "^\\d+$", "\\w", "^\\w$", "\\s", "^\\s$", "\\S", "^\\S+$", "\\W", "\\D", "[\\s]", "[^\\s]", "[^\\S]", "[\\d\\D]", "^[\\w-]+$",
  "\\bb", "a\\b", "\\Ba", "\\bword\\b", "^\\b", "\\b$", "gr\\b", "\\b\\u00e9", ".", "^.$", "^..$", "a.b", "^[^]$", "[]", "a$", "b$", "^a", "$^",
  "(a)\\1", "(a|b)\\1", "^(a)?\\1$", "^(?:(a)|b)\\1$", "\\1(a)", "(a\\1)", "(?<n>a)\\k<n>", "^(a|b)(a|b)\\2\\1$", "(?:(a)x)*\\1", "^((.)\\2)+$",
  "(?=a).b", "(?!a).", "(?<=a)b", "(?<!a)b", "(?<=a+)b", "(?<=^|,)b", "^(?!.*b).*$", "^(?=.*[a-z])(?=.*[0-9]).*$", "(?=(a))\\1b", "a(?!$)",
  "(?:)", "()", "a|", "^$", "a??b", "a{2}", "a{2,}", "a{0}b", "(a*)*b", "^(a?)*$", "^[a-z]{2,3}$", "\\u0061", "\\u{1f600}", "\\ud83d\\ude00", "\\x41",
  "\\cJ", "\\0", "\\t", "[\\b]", "[a-c-e]", "[-a]", "[a-]", "\\p{L}", "^\\p{Lu}$", "\\P{L}", "^\\p{Script=Greek}$", "[\\p{L}\\d]", "[^\\p{L}]",
  "\\p{Nd}", "\\/", "\\-", "^{a}$", "a{,3}", "}", "[[:alpha:]]", "[\\w-z]", "[a-\\d]", "(?i)a", "(?i:a)", "(?P<n>a)", "(?>a)", "a++", "a**", "*a", "^*",
  "\\A", "\\z", "\\Z", "\\h", "\\K", "\\a", "\\e", "\\_", "\\1", "(a)\\2", "\\k<n>", "(?<n>a)(?<n>b)", "[z-a]", "a{3,2}", "(", ")", "\\", "[a", "\\p{Foo", "\\c",
  "(?=a)*", "\\b+", "(?<=a)+", "\\pL", "\\x4", "\\u12", "\\01", "(?#a)", "(?R)", "a{2}{3}", "(?:(a)|b)*\\1", "(?<=(a)\\1)b", "(?!(a))\\1b",
];

let state = 0n;
function below(limit) {
  state = (state * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
  return Number((state >> 33n) % BigInt(limit));
}
const oneOf = (all) => all[below(all.length)];

function atom(depth) {
  const inner = () => alternatives(depth - 1);
  const plain = ["a", "b", "a", "b", ".", "\\d", "\\w", "\\s", "\\S", "\\W", "\\D", "[ab]", "[^a]", "[\\w.]", "[^\\s]", "-", "1", "X", "\\.", "\\u00e9", "\\p{L}"];
  switch (below(depth > 0 ? 24 : 16)) {
    case 0: return ["^", false];
    case 1: return ["$", false];
    case 2: return ["\\b", false];
    case 3: return ["\\B", false];
    case 4: return ["\\" + (1 + below(2)), true];
    case 16: case 17: case 18: return ["(" + inner() + ")", true];
    case 19: return ["(?:" + inner() + ")", true];
    case 20: return ["(?=" + inner() + ")", false];
    case 21: return ["(?!" + inner() + ")", false];
    case 22: return ["(?<=" + inner() + ")", false];
    case 23: return ["(?<!" + inner() + ")", false];
    default: return [oneOf(plain), true];
  }
}

function sequence(depth) {
  let text = "";
  for (let left = 1 + below(3); left > 0; left--) {
    const [part, repeats] = atom(depth);
    text += part + (repeats && below(4) === 0 ? oneOf(["*", "+", "?", "{2}", "{1,2}", "*?", "??", "+?"]) : "");
  }
  return text;
}

function alternatives(depth) {
  return below(5) === 0 ? sequence(depth) + "|" + sequence(depth) : sequence(depth);
}

function outcome(pattern) {
  for (const flag of ["u", ""]) {
    try {
      const expression = new RegExp(pattern, flag);
      const found = TEXTS.map((text) => (expression.test(text) ? 1 : 0)).join("");
      return flag === "u" ? { pattern, found } : { pattern, found, annex_b: true };
    } catch {
      // The next flag, or an error.
    }
  }
  return { pattern, error: true };
}

const [count, seed, file] = process.argv.slice(2);
state = BigInt(seed);
const patterns = new Set(CHOSEN);
while (patterns.size < new Set(CHOSEN).size + Number(count)) patterns.add(alternatives(2));
const lines = [...patterns].map((pattern) => "    " + JSON.stringify(outcome(pattern)));
require("fs").writeFileSync(file, '{\n  "texts": ' + JSON.stringify(TEXTS) + ',\n  "patterns": [\n' + lines.join(",\n") + "\n  ]\n}\n");
