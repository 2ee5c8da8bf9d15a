//! HTML: entities and tags.

use super::{Text, TextWriter};
use crate::budget::Budget;
use crate::error::BoxedResult as Result;
use crate::origin::Origin;

/// Decoded entities. (Python knows some two thousand.)
const ENTITIES: &[(&str, &str)] =
    &[("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("nbsp", "\u{a0}")];

/// Escapes a text for HTML, unless it is markup already.
pub(crate) fn escape(budget: &Budget, text: &Text) -> Result<Text> {
    if text.is_markup() {
        return Ok(text.clone());
    }
    let escaped = text.map(budget, |c, out| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    });
    Ok(escaped?.with_markup(true))
}

/// Removes comments and tags, joins the words with single blanks, and decodes entities.
pub(crate) fn without_tags(budget: &Budget, text: &Text) -> Result<Text> {
    let text = without(budget, text, "<!--", "-->")?;
    let text = without(budget, &text, "<", ">")?;
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    for (index, word) in string.split_whitespace().enumerate() {
        let at = word.as_ptr() as usize - string.as_ptr() as usize;
        out.template(if index > 0 { " " } else { "" })?;
        out.slice(&text, at..at + word.len())?;
    }
    unescape(budget, &out.finish())
}

/// Removes every `open`…`close` section.
fn without(budget: &Budget, text: &Text, open: &str, close: &str) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    let mut at = 0;
    while let Some(start) = string[at..].find(open).map(|start| start + at) {
        let Some(end) = string[start..].find(close) else { break };
        out.slice(text, at..start)?;
        at = start + end + close.len();
    }
    out.slice(text, at..string.len())?;
    Ok(out.finish())
}

/// Decodes entities. A decoded character is content if any part of its entity is.
pub(crate) fn unescape(budget: &Budget, text: &Text) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    let mut at = 0;
    while let Some(start) = string[at..].find('&').map(|start| start + at) {
        out.slice(text, at..start)?;
        at = start;
        let end = string[start..].bytes().take(12).position(|byte| byte == b';').map(|end| start + end);
        match end.and_then(|end| Some((end, entity(&string[start + 1..end])?))) {
            Some((end, character)) => {
                let is_content =
                    text.segments_in(start..end + 1).any(|(origin, _)| origin == Origin::Content);
                out.push(&character, if is_content { Origin::Content } else { Origin::Template })?;
                at = end + 1;
            }
            None => {
                out.slice(text, at..at + 1)?;
                at += 1;
            }
        }
    }
    out.slice(text, at..string.len())?;
    Ok(out.finish())
}

fn entity(name: &str) -> Option<String> {
    let code = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        },
        None => return ENTITIES.iter().find(|(found, _)| *found == name).map(|(_, text)| (*text).to_owned()),
    };
    char::from_u32(code?).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_in_content_stay_content() {
        let budget = Budget::new(crate::Limits::default());
        let text = Text::new("&lt;b&#62; &zz; &", Origin::Content);
        let undone = unescape(&budget, &text).unwrap();
        assert_eq!(undone.as_str(), "<b> &zz; &");
        assert!(undone.segments().all(|(origin, _)| origin == Origin::Content));
    }
}
