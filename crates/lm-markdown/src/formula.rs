//! Formulas in LaTeX: MathML for the page, readable text for a terminal.

use std::convert::Infallible;

use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Event, Parser, Storage, push_mathml};

use crate::math_text;

/// Longest formula that is drawn, in bytes; longer ones are shown as they are.
const MAX_BYTES: usize = 4_000;
/// Deepest nesting of braces and environments.
const MAX_DEPTH: usize = 40;
/// Commands that define others, which could grow without bound.
const DEFINITIONS: [&str; 7] =
    ["\\def", "\\edef", "\\gdef", "\\let", "\\newcommand", "\\renewcommand", "\\providecommand"];

/// MathML of a formula; `None` if it is not understood.
pub(crate) fn mathml(tex: &str, display: bool) -> Option<String> {
    let storage = Storage::new();
    let events = events(tex, &storage)?;
    let display_mode = if display { DisplayMode::Block } else { DisplayMode::Inline };
    let config = RenderConfig { display_mode, ..RenderConfig::default() };
    let mut out = String::new();
    push_mathml(&mut out, events.into_iter().map(Ok::<_, Infallible>), config).ok()?;
    Some(out)
}

/// The formula as text, such as `a² + √(b/c)`; its source if it is not understood.
pub(crate) fn text(tex: &str) -> String {
    let storage = Storage::new();
    events(tex, &storage).and_then(|events| math_text::written(&events)).unwrap_or_else(|| tex.to_owned())
}

fn events<'a>(tex: &'a str, storage: &'a Storage) -> Option<Vec<Event<'a>>> {
    let is_bounded = tex.len() <= MAX_BYTES && depth(tex) <= MAX_DEPTH;
    // pulldown-latex takes one byte after a backslash.
    let has_foreign_command = tex.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && !pair[1].is_ascii());
    if !is_bounded || has_foreign_command || DEFINITIONS.iter().any(|name| tex.contains(name)) {
        return None;
    }
    Parser::new(tex, storage).collect::<Result<_, _>>().ok()
}

/// Deepest nesting, at most: commands whose arguments have no braces nest, too.
fn depth(tex: &str) -> usize {
    let mut depth = 0_usize;
    let mut most = 0;
    let mut commands = 0_usize;
    for c in tex.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '\\' | '^' | '_' => commands += 1,
            c if c.is_whitespace() || c.is_ascii_alphabetic() => {}
            _ => commands = 0,
        }
        most = most.max(depth).max(commands / 8);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_readable_text() {
        for (tex, expected) in [
            ("E = mc^2", "E = mc²"),
            ("\\frac{a+b}{2}", "(a + b)/2"),
            ("\\sqrt{x_1^2 + y}", "√(x₁² + y)"),
            ("\\sum_{i=1}^{n} i", "∑ᵢ₌₁ⁿ i"),
            ("\\alpha \\le \\beta", "α ≤ β"),
            ("x^{a+q}", "x^(a + q)"),
            ("\\text{if } x > 0", "if x > 0"),
            ("\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}", "a = b\nc = d"),
            ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "(1, 2; 3, 4)"),
            ("\\lim_{x \\to 0} \\sin x", "lim_(x → 0) sin x"),
            ("\\unknown{x}", "\\unknown{x}"),
            ("a \\é b", "a \\é b"),
            ("a \\→", "a \\→"),
        ] {
            assert_eq!(text(tex), expected, "{tex}");
        }
    }

    #[test]
    fn hostile_formulas_are_shown_as_they_are() {
        let nested = ["{".repeat(2_000) + &"}".repeat(2_000), "\\frac".repeat(700), "x^".repeat(2_000)];
        for tex in [&nested[0], &nested[1], &nested[2], "\\def\\a{\\a\\a}\\a"] {
            assert_eq!((mathml(tex, false), text(tex)), (None, tex.to_owned()));
        }
    }
}
