//! Case conversion.

use crate::jinja::error::Result;
use crate::jinja::limits::Limits;
use crate::jinja::text::{Text, TextWriter};

/// Calls the method with this name.
pub(super) fn change(limits: &Limits, text: &Text, name: &str) -> Result<Text> {
    match name {
        "upper" => upper(limits, text),
        "title" => title(limits, text),
        "capitalize" => capitalize(limits, text),
        "swapcase" => text.map(limits, |c, out| {
            if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
        }),
        // Python's casefold maps a few more characters (`ß` and others).
        "casefold" => text.map(limits, |c, out| match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'ς' => out.push('σ'),
            c => out.extend(c.to_lowercase()),
        }),
        _ => lower(limits, text),
    }
}

/// `str.lower`.
pub(in crate::jinja) fn lower(limits: &Limits, text: &Text) -> Result<Text> {
    by_piece(limits, text, str::to_lowercase)
}

/// `str.upper`.
pub(in crate::jinja) fn upper(limits: &Limits, text: &Text) -> Result<Text> {
    by_piece(limits, text, str::to_uppercase)
}

fn by_piece(limits: &Limits, text: &Text, change: fn(&str) -> String) -> Result<Text> {
    let mut out = TextWriter::new(limits);
    for (kind, piece) in text.all_pieces() {
        limits.read(piece.len().saturating_mul(8))?;
        limits.build(piece.len().saturating_mul(2))?;
        out.push(&change(piece), kind)?;
    }
    Ok(out.finish().with_markup(text.is_markup()))
}

/// `str.capitalize`.
pub(in crate::jinja) fn capitalize(limits: &Limits, text: &Text) -> Result<Text> {
    let mut first = true;
    by_word(limits, text, |_| std::mem::replace(&mut first, false))
}

/// `str.title`: capitals after non-letters.
fn title(limits: &Limits, text: &Text) -> Result<Text> {
    by_word(limits, text, |before| !before)
}

/// Capitals where `begins` returns true (given whether a letter precedes), lower case elsewhere.
fn by_word(limits: &Limits, text: &Text, mut begins: impl FnMut(bool) -> bool) -> Result<Text> {
    let is_cased = |c: char| c.is_lowercase() || c.is_uppercase();
    let mut after = text.as_str().chars().skip(1);
    let mut in_word = false;
    text.map(limits, |c, out| {
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
pub(in crate::jinja) fn title_word(limits: &Limits, text: &Text) -> Result<Text> {
    let mut in_word = false;
    text.map(limits, |c, out| {
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
