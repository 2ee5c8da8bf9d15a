//! Events of a formula as text, on one line but for environments of several.

use pulldown_latex::event::{Content, DelimiterType, EnvironmentFlow, Event, Grouping, ScriptType, Visual};

/// Deepest nesting.
const MAX_DEPTH: usize = 200;

/// Digits, signs and letters that have superscripts and subscripts in Unicode.
const SUPERSCRIPTS: &str = "0⁰1¹2²3³4⁴5⁵6⁶7⁷8⁸9⁹+⁺-⁻−⁻=⁼(⁽)⁾nⁿiⁱaᵃbᵇcᶜdᵈeᵉkᵏmᵐpᵖtᵗxˣyʸ∗*'′";
const SUBSCRIPTS: &str = "0₀1₁2₂3₃4₄5₅6₆7₇8₈9₉+₊-₋−₋=₌(₍)₎aₐeₑoₒxₓiᵢjⱼkₖlₗmₘnₙpₚsₛtₜ";

/// Writes the events; `None` if they nest too deeply.
pub(crate) fn written(events: &[Event<'_>]) -> Option<String> {
    let mut writer = Writer { events, at: 0 };
    let mut out = String::new();
    while writer.at < events.len() {
        writer.element(&mut out, 0)?;
    }
    Some(tidy(&out))
}

struct Writer<'a> {
    events: &'a [Event<'a>],
    at: usize,
}

impl Writer<'_> {
    /// Writes the next element.
    fn element(&mut self, out: &mut String, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let event = self.events.get(self.at)?;
        self.at += 1;
        match event {
            Event::Content(content) => push_content(content, out),
            Event::Begin(grouping) => self.group(grouping, out, depth)?,
            Event::End | Event::StateChange(_) => {}
            Event::Visual(visual) => self.visual(visual, out, depth)?,
            Event::Script { ty, .. } => self.script(*ty, out, depth)?,
            Event::Space { width, .. } => {
                if width.is_some_and(|width| width.value > 0.0) {
                    out.push(' ');
                }
            }
            Event::EnvironmentFlow(flow) => push_flow(flow, false, out),
        }
        Some(())
    }

    /// The next element as a text of its own; changes of style belong to what follows them.
    fn next(&mut self, depth: usize) -> Option<String> {
        while matches!(self.events.get(self.at), Some(Event::StateChange(_))) {
            self.at += 1;
        }
        let mut out = String::new();
        self.element(&mut out, depth + 1)?;
        Some(tidy(&out))
    }

    fn group(&mut self, grouping: &Grouping, out: &mut String, depth: usize) -> Option<()> {
        let mut inner = String::new();
        let is_matrix = matches!(grouping, Grouping::Matrix { .. } | Grouping::Array(_));
        while let Some(event) = self.events.get(self.at) {
            match event {
                Event::End => break,
                Event::EnvironmentFlow(flow) => {
                    self.at += 1;
                    push_flow(flow, is_matrix, &mut inner);
                }
                _ => self.element(&mut inner, depth + 1)?,
            }
        }
        self.at += 1;
        let inner = tidy(&inner);
        match grouping {
            Grouping::LeftRight(left, right) => {
                out.extend(*left);
                out.push_str(&inner);
                out.extend(*right);
            }
            Grouping::Cases { .. } => {
                out.push_str("{ ");
                out.push_str(&inner);
            }
            _ => out.push_str(&inner),
        }
        Some(())
    }

    fn visual(&mut self, visual: &Visual, out: &mut String, depth: usize) -> Option<()> {
        let first = self.next(depth)?;
        match visual {
            Visual::SquareRoot => {
                out.push('√');
                out.push_str(&grouped(&first));
            }
            Visual::Root => {
                let index = self.next(depth)?;
                out.push_str(&raised(&index, SUPERSCRIPTS).unwrap_or(index));
                out.push('√');
                out.push_str(&grouped(&first));
            }
            Visual::Fraction(line) => {
                let below = self.next(depth)?;
                // Without a line it is a binomial coefficient.
                let sign = if line.is_some_and(|line| line.value == 0.0) { " over " } else { "/" };
                out.push_str(&format!("{}{sign}{}", grouped(&first), grouped(&below)));
            }
            Visual::Negation => {
                out.push_str(&first);
                out.push('\u{338}');
            }
        }
        Some(())
    }

    fn script(&mut self, ty: ScriptType, out: &mut String, depth: usize) -> Option<()> {
        let base = self.next(depth)?;
        out.push_str(&base);
        let first = self.next(depth)?;
        match ty {
            ScriptType::Superscript => push_script(&first, '^', SUPERSCRIPTS, out),
            ScriptType::Subscript => push_script(&first, '_', SUBSCRIPTS, out),
            ScriptType::SubSuperscript => {
                let second = self.next(depth)?;
                push_script(&first, '_', SUBSCRIPTS, out);
                push_script(&second, '^', SUPERSCRIPTS, out);
            }
        }
        // Large operators and functions are apart from what they apply to.
        if base.chars().count() > 1 || base.starts_with(['∑', '∏', '∫', '⋃', '⋂']) {
            out.push(' ');
        }
        Some(())
    }
}

fn push_script(script: &str, sign: char, table: &str, out: &mut String) {
    match raised(script, table) {
        Some(raised) => out.push_str(&raised),
        // An accent, such as that of a vector.
        None if sign == '^' && matches!(script, "→" | "^" | "‾" | "˙" | "~" | "¯") => {
            out.push(match script {
                "→" => '\u{20d7}',
                "^" => '\u{302}',
                "˙" => '\u{307}',
                "~" => '\u{303}',
                _ => '\u{304}',
            });
        }
        None => {
            out.push(sign);
            out.push_str(&grouped(script));
        }
    }
}

/// The text in small characters, if all its characters have them.
fn raised(text: &str, table: &str) -> Option<String> {
    let small = |c: char| {
        let mut pairs = table.chars();
        while let Some(from) = pairs.next() {
            let to = pairs.next()?;
            if from == c {
                return Some(to);
            }
        }
        None
    };
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    text.chars().map(small).collect::<Option<String>>().filter(|text| !text.is_empty())
}

/// The text in parentheses, unless it is one word.
fn grouped(text: &str) -> String {
    let is_word = text.chars().all(|c| c.is_alphanumeric() || "√′.²³₀₁₂".contains(c));
    let is_closed = text.starts_with('(') && text.ends_with(')') && text.matches('(').count() == 1;
    if is_word || is_closed { text.to_owned() } else { format!("({text})") }
}

fn push_content(content: &Content<'_>, out: &mut String) {
    match content {
        Content::Text(text) | Content::Number(text) => out.push_str(text),
        Content::Function(name) => {
            if out.ends_with(|c: char| c.is_alphanumeric()) {
                out.push(' ');
            }
            out.extend([*name, " "]);
        }
        Content::Ordinary { content, .. } => out.push(*content),
        Content::LargeOp { content, .. } => {
            if out.ends_with(char::is_alphanumeric) {
                out.push(' ');
            }
            out.push(*content);
        }
        Content::BinaryOp { content, .. } => {
            let spaced = !out.trim_end().is_empty() && !out.trim_end().ends_with(['(', '=', ',']);
            out.extend(spaced.then_some(' '));
            out.push(if *content == '−' { '-' } else { *content });
            out.extend(spaced.then_some(' '));
        }
        Content::Relation { content, .. } => {
            let mut bytes = [0; 8];
            let text = String::from_utf8_lossy(content.encode_utf8_to_buf(&mut bytes)).into_owned();
            out.extend([" ", &text, " "]);
        }
        Content::Delimiter { content, ty, .. } => match ty {
            DelimiterType::Fence => out.extend([' ', *content, ' ']),
            DelimiterType::Open | DelimiterType::Close => {
                if *ty == DelimiterType::Open && out.ends_with(' ') && *content == '(' {
                    trim_function(out);
                }
                out.push(*content);
            }
        },
        Content::Punctuation(c) => out.extend([*c, ' ']),
    }
}

/// Removes the space between a function and its parenthesis.
fn trim_function(out: &mut String) {
    let before = out.trim_end();
    if before.ends_with(|c: char| c.is_ascii_alphabetic()) {
        out.truncate(before.len());
    }
}

fn push_flow(flow: &EnvironmentFlow, is_matrix: bool, out: &mut String) {
    match flow {
        EnvironmentFlow::Alignment if is_matrix => {
            out.truncate(out.trim_end().len());
            out.push_str(", ");
        }
        EnvironmentFlow::Alignment => out.push(' '),
        EnvironmentFlow::NewLine { .. } => {
            out.truncate(out.trim_end().len());
            out.push_str(if is_matrix { "; " } else { "\n" });
        }
        EnvironmentFlow::StartLines { .. } => {}
    }
}

/// The text with single spaces, and none at its ends.
fn tidy(text: &str) -> String {
    let line = |line: &str| line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let text = text.lines().map(line).collect::<Vec<_>>().join("\n");
    text.replace("( ", "(").replace(" )", ")").replace(" ,", ",").trim_matches([';', ' ', '\n']).to_owned()
}
