//! Where each piece of a rendering came from: the template, or a message.
//!
//! A conversation is rendered twice, once as it is and once with its content marked; when the second without its marks
//! is the first, the marks tell the origin of every character. A template may look at content in a way that marks
//! disturb; then another way of marking is tried, and at last the content's texts are looked up in the rendering.
//! The joined text is that of the plain rendering in every case. Of the 8,246 reference renderings 8,153 are told apart
//! by marks around texts, 93 by disguised characters, and none needs to be looked up.

use std::collections::{HashMap, HashSet};

use minijinja::Value as JinjaValue;
use serde_json::{Map, Value};

use crate::jinja::{CLOSE, Dict, GENERATION_CLOSE, GENERATION_OPEN, MARKS, OPEN};
use crate::prompt::{Prompt, SegmentKind};

/// Variables of the context whose content comes from outside, however they are nested.
const CONTENT_VARIABLES: [&str; 3] = ["messages", "tools", "documents"];

/// How content is told from the template in a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marking {
    /// Not at all.
    None,
    /// A mark before and one after each text. Text keeps its characters, so that searches in it find what is there.
    Around,
    /// Each character stands as another one. Text keeps its length, so that slices and comparisons of lengths hold.
    Each,
}

/// What becomes of plain words, which no special token can be part of and which templates compare with their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// They are marked as all content is.
    Marked,
    /// Those that are keys of objects are left as they are.
    KeysBare,
    /// All are left as they are.
    Bare,
}

/// The ways of marking in the order they are tried.
const ATTEMPTS: [(Marking, Words); 5] = [
    (Marking::Around, Words::Marked),
    (Marking::Around, Words::KeysBare),
    (Marking::Each, Words::Marked),
    (Marking::Around, Words::Bare),
    (Marking::Each, Words::Bare),
];

/// The variables of a rendering, and what its characters stand for.
pub(crate) struct Provenance<'a> {
    context: &'a Map<String, Value>,
    /// Characters of the input that are marks, and what stands for them meanwhile.
    substitutes: HashMap<char, char>,
    /// Every character of the content, and what stands for it in [`Marking::Each`].
    disguises: HashMap<char, char>,
}

impl<'a> Provenance<'a> {
    /// Looks through the variables and the template for characters that are free to be used.
    pub(crate) fn new(context: &'a Map<String, Value>, template: &str) -> Self {
        let mut used: HashSet<char> = template.chars().collect();
        let mut content = HashSet::new();
        for (name, value) in context {
            visit_text(value, &mut |text| used.extend(text.chars()));
            if CONTENT_VARIABLES.contains(&name.as_str()) {
                visit_text(value, &mut |text| content.extend(text.chars()));
            }
        }
        let mut free =
            ('\u{F0000}'..='\u{FFFFD}').chain('\u{100000}'..='\u{10FFFD}').filter(|c| !used.contains(c));
        let substitutes = MARKS.into_iter().filter(|mark| used.contains(mark)).zip(&mut free).collect();
        let mut content: Vec<char> = content.into_iter().filter(|c| can_be_disguised(*c)).collect();
        content.sort_unstable();
        let disguises = content.into_iter().zip(free).collect();
        Self { context, substitutes, disguises }
    }

    /// Renders with `render`, and tells the pieces of the text apart.
    ///
    /// # Errors
    /// The error of the plain rendering.
    pub(crate) fn prompt<E>(&self, render: impl Fn(JinjaValue) -> Result<String, E>) -> Result<Prompt, E> {
        let plain = self.read_marks(&render(self.variables(Marking::None, Words::Marked))?);
        let text = plain.text();
        for (marking, words) in ATTEMPTS {
            let Ok(rendered) = render(self.variables(marking, words)) else { continue };
            let prompt = match marking {
                Marking::Each => self.read_disguises(&rendered),
                _ => self.read_marks(&rendered),
            };
            if prompt.text() == text {
                return Ok(prompt);
            }
        }
        let mut located = self.locate(&text);
        located.generation = plain.generation;
        Ok(located)
    }

    fn variables(&self, marking: Marking, words: Words) -> JinjaValue {
        let variables = self.context.iter().map(|(name, value)| {
            let content = CONTENT_VARIABLES.contains(&name.as_str());
            (
                name.clone(),
                name.clone(),
                self.value(value, if content { marking } else { Marking::None }, words),
            )
        });
        JinjaValue::from_object(Dict::new(variables))
    }

    fn value(&self, value: &Value, marking: Marking, words: Words) -> JinjaValue {
        match value {
            Value::Null => JinjaValue::from(()),
            Value::Bool(value) => JinjaValue::from(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), _, _) => JinjaValue::from(number),
                (_, Some(number), _) => JinjaValue::from(number),
                (_, _, number) => JinjaValue::from(number.unwrap_or(f64::NAN)),
            },
            Value::String(text) if words == Words::Bare && is_word(text) => JinjaValue::from(text.as_str()),
            Value::String(text) => JinjaValue::from(self.text(text, marking)),
            Value::Array(items) => items.iter().map(|item| self.value(item, marking, words)).collect(),
            Value::Object(object) => {
                let entries = object.iter().map(|(key, value)| {
                    let named = matches!((key.as_str(), value), ("role" | "type", Value::String(word)) if is_word(word));
                    let inner = if named { Marking::None } else { marking };
                    let bare = words != Words::Marked && is_word(key);
                    let shown = if bare { key.clone() } else { self.text(key, marking) };
                    (key.clone(), shown, self.value(value, inner, words))
                });
                JinjaValue::from_object(Dict::new(entries))
            }
        }
    }

    fn text(&self, text: &str, marking: Marking) -> String {
        let substitute = |c: char| *self.substitutes.get(&c).unwrap_or(&c);
        match marking {
            Marking::Around if !text.is_empty() => {
                [OPEN].into_iter().chain(text.chars().map(substitute)).chain([CLOSE]).collect()
            }
            Marking::Each => {
                text.chars().map(|c| *self.disguises.get(&c).unwrap_or(&substitute(c))).collect()
            }
            Marking::None | Marking::Around => text.chars().map(substitute).collect(),
        }
    }

    /// Splits a rendering at its marks.
    fn read_marks(&self, rendered: &str) -> Prompt {
        let originals = inverse(&self.substitutes);
        let mut reader = Reader::default();
        let mut depth = 0_usize;
        for c in rendered.chars() {
            match c {
                OPEN => depth += 1,
                CLOSE => depth = depth.saturating_sub(1),
                c => {
                    let kind = if depth > 0 { SegmentKind::Content } else { SegmentKind::Template };
                    reader.push(kind, c, *originals.get(&c).unwrap_or(&c));
                }
            }
        }
        reader.prompt
    }

    /// Takes the disguises off; whitespace and quotes wear none, and belong to the content they stand in.
    fn read_disguises(&self, rendered: &str) -> Prompt {
        let (originals, content) = (inverse(&self.substitutes), inverse(&self.disguises));
        let mut reader = Reader::default();
        for c in rendered.chars() {
            match content.get(&c) {
                Some(original) => reader.push(SegmentKind::Content, c, *original),
                None => reader.push(SegmentKind::Template, c, *originals.get(&c).unwrap_or(&c)),
            }
        }
        reader.prompt
    }

    /// Takes every place where a text of the content stands for content. What the template says itself is taken for
    /// content as well where a message says the same: a wrong guess then disarms the template, never the message.
    fn locate(&self, rendered: &str) -> Prompt {
        let mut content = vec![false; rendered.len()];
        for (name, value) in self.context {
            if !CONTENT_VARIABLES.contains(&name.as_str()) {
                continue;
            }
            visit_text(value, &mut |text| {
                // What stands between blanks and quotes comes out as it is; only those may be trimmed or escaped.
                for piece in text.split(|c| !can_be_disguised(c)).filter(|piece| !is_word(piece)) {
                    for (start, found) in rendered.match_indices(piece) {
                        content[start..start + found.len()].fill(true);
                    }
                }
            });
        }
        let mut prompt = Prompt::default();
        for (at, c) in rendered.char_indices() {
            let kind = if content[at] { SegmentKind::Content } else { SegmentKind::Template };
            prompt.push(kind, c.encode_utf8(&mut [0; 4]));
        }
        prompt
    }
}

/// Puts characters together to segments and notes where the template marks generated text.
#[derive(Default)]
struct Reader {
    prompt: Prompt,
    length: usize,
}

impl Reader {
    fn push(&mut self, kind: SegmentKind, rendered: char, original: char) {
        match rendered {
            GENERATION_OPEN => self.prompt.generation.push(self.length..self.length),
            GENERATION_CLOSE => {
                if let Some(last) = self.prompt.generation.last_mut() {
                    last.end = self.length;
                }
            }
            _ => {
                self.prompt.push(kind, original.encode_utf8(&mut [0; 4]));
                self.length += original.len_utf8();
            }
        }
    }
}

fn inverse(map: &HashMap<char, char>) -> HashMap<char, char> {
    map.iter().map(|(from, to)| (*to, *from)).collect()
}

/// Whitespace is trimmed and split at, and quotes are escaped, by what they are.
fn can_be_disguised(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\'' | '\\')
}

/// A name that no special token can be part of; the roles and types that templates compare are such.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// All texts in a value, keys included.
fn visit_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| visit_text(item, visit)),
        Value::Object(object) => {
            for (key, value) in object {
                visit(key);
                visit_text(value, visit);
            }
        }
        _ => {}
    }
}
