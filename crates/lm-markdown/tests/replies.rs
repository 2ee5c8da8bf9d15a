//! Replies in the style of language models.

/// Name and text of each reply.
pub const REPLIES: [(&str, &str); 40] = [
    ("paragraphs", "Hello! How can I help you today?\n\nTell me what you need, and I will do my best."),
    (
        "emphasis",
        "This is **very important**, *slightly* so, ***both***, and ~~not at all~~. snake_case_name and 2 * 3 * 4 stay.",
    ),
    (
        "headings",
        "# Title\n\nText.\n\n## Part *one*\ntext right after\n\n### Part 1.1 ###\n\nSetext\n------\n\nEnd",
    ),
    (
        "bullets",
        "Here are some options:\n\n- **Apples**: red\n- **Pears**: green\n* other marker\n+ third marker\n\nDone.",
    ),
    (
        "nested lists",
        "1. First step\n   - detail one\n     - deeper detail\n   - detail two\n2. Second step\n   1. inner\n   2. inner two\n\n   A paragraph of the second step.\n\n3. Third step",
    ),
    ("loose list", "- one\n\n- two\n\n  more of two\n\n- three\n\nAfter."),
    ("list from seven", "7. seven\n8. eight\n9. nine"),
    ("list after text", "The steps are:\n1. one\n2. two\n\nAnd in short:\n- a\n- b"),
    ("tasks", "- [x] write the parser\n- [ ] write the tests\n  - [ ] for both outputs\n- plain"),
    (
        "code block",
        "Use this:\n\n```python\ndef add(a, b):\n    \"\"\"Adds.\"\"\"\n    return a + b  # sum\n\nprint(add(1, 2))\n```\n\nIt prints `3`.",
    ),
    ("code after text", "Run:\n```bash\ncargo build --release && ./target/release/lm\n```\nand wait."),
    ("unknown language", "```brainf\n++[>+<-]\n```\n\n```\nplain\n```"),
    (
        "fences in fences",
        "````markdown\nA block:\n\n```js\nlet x = 1 < 2;\n```\n\nEnd.\n````\n\nAfter.\n\n~~~\n```\nx\n```\n~~~",
    ),
    (
        "unclosed fence",
        "Here is the code:\n\n```rust\nfn main() {\n    println!(\"hi\");\n\n    // the reply was cut",
    ),
    (
        "code in a list",
        "1. Install:\n   ```bash\n   npm install\n   ```\n2. Run:\n\n   ```bash\n   npm start\n   ```\n\n   It listens on port 3000.\n3. Done",
    ),
    ("indented code", "Text:\n\n    let x = 1;\n    let y = 2;\n\nEnd."),
    ("code spans", "Use `x`, ``a`b``, ` c `, `` ` ``, and `\\(not math\\)` or `$5`; an unclosed ` stays."),
    (
        "diff and json",
        "```diff\n--- a/x\n+++ b/x\n-old\n+new\n```\n\n```json\n{\"a\": [1, true, null], \"b\": \"text\"}\n```",
    ),
    (
        "prices",
        "It costs $5 and $6, or $7.50 to $9 a month; US$5 and CA$6; 5$ or 6$. A **$10** bill, and from $5 million to 10$.",
    ),
    (
        "dollar formulas",
        "Euler: $e^{i\\pi} + 1 = 0$, and $a_1 + b_1$ with $x < y$.\n\n$$\\int_0^1 x^2 \\, dx = \\frac{1}{3}$$\n\nDone.",
    ),
    (
        "bracket formulas",
        "The roots are\n\\[\nx = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}\n\\]\nwhere \\(a \\neq 0\\) and \\(b^* + c^*\\) as well.",
    ),
    (
        "aligned formula",
        "\\[\n\\begin{aligned}\n(a+b)^2 &= (a+b)(a+b) \\\\\n&= a^2 + 2ab + b^2\n\\end{aligned}\n\\]\n\nand $$\n\\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\end{pmatrix}\n$$",
    ),
    (
        "formulas in a list",
        "1. **Mean**: \\(\\mu = \\frac{1}{n}\\sum_{i=1}^{n} x_i\\)\n2. **Variance**:\n   \\[\n   \\sigma^2 = \\frac{1}{n}\\sum_{i=1}^n (x_i - \\mu)^2\n   \\]\n3. Limit: $\\lim_{x \\to \\infty} f(x)$",
    ),
    ("unknown formula", "Here \\(\\unknowncommand{x}\\) and an open \\(x + y and \\[ z stay readable."),
    (
        "table",
        "| Name | Price | Note |\n|:-----|------:|:----:|\n| Apple | 1.20 | red |\n| Pear with a long name | 10.00 | **green** and `x\\|y` |\n\nEnd.",
    ),
    (
        "table in text",
        "The table:\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |\nText after it is a row.\n\nNo | table here.",
    ),
    (
        "wide table",
        "| Language | Typing | Memory | Concurrency | Package manager | Year |\n|---|---|---|---|---|---|\n| Rust | static, strong, inferred | ownership and borrowing | threads, async | cargo | 2015 |\n| Python | dynamic, strong | reference counting | asyncio, threads | pip, uv | 1991 |",
    ),
    ("line breaks in cells", "| a | b |\n|---|---|\n| one<br>two | x<br/>y |"),
    (
        "html",
        "Press <kbd>Ctrl</kbd>+<kbd>C</kbd>, H<sub>2</sub>O, x<sup>2</sup>.\n\n<details>\n<summary>More</summary>\n\nHidden *text*.\n\n</details>\n\n<div class=\"x\">raw</div>",
    ),
    ("entities", "AT&T &amp; &lt;tag&gt; &copy; 1 < 2 && 3 > 2 &unknown;"),
    (
        "links",
        "See [the docs](https://example.com/a_(b)?x=1&y=2 \"Title\"), <https://example.com/auto>, https://example.com/bare_path, and ![a cat](https://example.com/cat.png).",
    ),
    (
        "links with brackets",
        "[a [nested] text](https://example.com) [x][y] [z] and array[0] or f(x)[1](2).\n\n[y]: https://example.com/y",
    ),
    ("quotes", "> A quote with *emphasis*\n> over two lines\n>\n> - and a list\n>\n> > nested\n\nAfter."),
    ("rules", "One\n\n---\n\nTwo\n\n***\n\nThree"),
    (
        "footnotes",
        "A claim[^1] and another[^note].\n\n[^1]: The source.\n\n[^note]: A longer one\n    with a second line.",
    ),
    (
        "right to left",
        "שלום! הנה רשימה:\n\n- פריט ראשון עם `code`\n- פריט שני\n\nمرحبا بالعالم، هذا **نص عريض**.",
    ),
    (
        "wide characters",
        "你好，世界。这是一段没有空格的中文文本，它应该在行末正确换行而不是溢出屏幕的边缘。\n\n日本語とEnglishの混在 🎉👨‍👩‍👧 emoji。",
    ),
    (
        "long words",
        "A very long address https://example.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft.",
    ),
    ("windows lines", "One\r\ntwo\r\n\r\n- a\r\n- b\r\n\r\n```c\r\nint x;\r\n```\r\n"),
    (
        "chat of code and prose",
        "Sure! **Step 1.** Create `main.rs`:\n\n```rust\nuse std::io;\n\n/// Doc.\nfn main() -> io::Result<()> {\n    let n: u32 = 42;\n    println!(\"{n}\");\n    Ok(())\n}\n```\n\n**Step 2.** Build it:\n\n```sh\n$ cargo run\n42\n```\n\nNotes:\n\n* `u32` is unsigned\n* see <https://doc.rust-lang.org>\n",
    ),
];
