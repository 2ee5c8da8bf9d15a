//! Case conversion.

use crate::budget::Budget;
use crate::error::BoxedResult as Result;
use crate::text::{Text, TextWriter};

/// Calls the method with this name.
pub(super) fn change(budget: &Budget, text: &Text, name: &str) -> Result<Text> {
    match name {
        "upper" => upper(budget, text),
        "title" => title(budget, text),
        "capitalize" => capitalize(budget, text),
        "swapcase" => text.map(budget, |c, out| {
            if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
        }),
        // Python's casefold maps a few more characters (`ß` and others).
        "casefold" => text.map(budget, |c, out| match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'ς' => out.push('σ'),
            c => out.extend(c.to_lowercase()),
        }),
        _ => lower(budget, text),
    }
}

/// `str.lower`.
pub(crate) fn lower(budget: &Budget, text: &Text) -> Result<Text> {
    by_piece(budget, text, str::to_lowercase)
}

/// `str.upper`.
pub(crate) fn upper(budget: &Budget, text: &Text) -> Result<Text> {
    by_piece(budget, text, str::to_uppercase)
}

fn by_piece(budget: &Budget, text: &Text, change: fn(&str) -> String) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    for (origin, segment) in text.segments() {
        budget.read(segment.len().saturating_mul(8))?;
        budget.build(segment.len().saturating_mul(2))?;
        out.push(&change(segment), origin)?;
    }
    Ok(out.finish().with_markup(text.is_markup()))
}

/// `str.capitalize`.
pub(crate) fn capitalize(budget: &Budget, text: &Text) -> Result<Text> {
    let mut first = true;
    by_word(budget, text, |_| std::mem::replace(&mut first, false))
}

/// `str.title`: capitals after non-letters.
fn title(budget: &Budget, text: &Text) -> Result<Text> {
    by_word(budget, text, |before| !before)
}

/// Capitals where `begins` returns true (given whether a letter precedes), lower case elsewhere.
fn by_word(budget: &Budget, text: &Text, mut begins: impl FnMut(bool) -> bool) -> Result<Text> {
    let is_cased = |c: char| c.is_lowercase() || c.is_uppercase();
    let mut after = text.as_str().chars().skip(1);
    let mut in_word = false;
    text.map(budget, |c, out| {
        let ends = !after.next().is_some_and(is_cased);
        match c {
            c if begins(in_word) => to_title(c, out),
            // The only lower-case letter with another form at the end of a word.
            'Σ' if in_word && ends => out.push('ς'),
            c => out.extend(c.to_lowercase()),
        }
        in_word = is_cased(c);
    })
}

/// The filter `title`: capitals after a boundary ([`is_boundary`]).
pub(crate) fn title_word(budget: &Budget, text: &Text) -> Result<Text> {
    let mut in_word = false;
    text.map(budget, |c, out| {
        if in_word {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        in_word = !is_boundary(c);
    })
}

/// Returns true if the filter `title` starts a word after `c`.
fn is_boundary(c: char) -> bool {
    c.is_whitespace() || matches!(c, '-' | '(' | '{' | '[' | '<')
}

fn to_title(c: char, out: &mut String) {
    match c {
        'ß' => out.push_str("Ss"),
        // Digraphs have a title case between lower and upper case.
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        c => out.extend(c.to_uppercase()),
    }
}
