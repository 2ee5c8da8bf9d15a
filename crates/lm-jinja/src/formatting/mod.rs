//! Python's two kinds of string formatting: `'%s' % value` and `'{}'.format(value)`.

mod braces;
mod numbers;
mod percent;

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::text::{Text, TextWriter};

pub(super) use braces::format;
pub(super) use percent::percent;

/// Maximum field width and number of digits.
const MAX_WIDTH: usize = 1 << 16;

/// Cost of a digit of the precision, in bytes read.
const DIGIT_COST: usize = 16;

/// Counts the cost of a field with this precision.
fn meter(interpreter: &Interpreter<'_>, precision: Option<usize>) -> Result<()> {
    interpreter.budget.step()?;
    interpreter.budget.read(precision.unwrap_or(0).saturating_mul(DIGIT_COST))
}

/// Alignment of text in a wider field.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
    Center,
    /// Right, with the fill after the sign.
    AfterSign,
}

/// Writes text padded to at least `width` characters.
fn pad(out: &mut TextWriter<'_>, text: &Text, fill: &Text, align: Align, width: usize) -> Result<()> {
    let missing = width.saturating_sub(text.count());
    let sign = match align {
        Align::AfterSign => usize::from(text.as_str().starts_with(['+', '-', ' '])),
        _ => 0,
    };
    let left = match align {
        Align::Left => 0,
        Align::Right | Align::AfterSign => missing,
        Align::Center => missing / 2,
    };
    out.slice(text, 0..sign)?;
    out.repeat(fill, left)?;
    out.slice(text, sign..text.len())?;
    out.repeat(fill, missing - left)
}

/// Parses a leading width or precision; returns it with the rest of the text.
fn leading_number(text: &str) -> Result<(Option<usize>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = match &text[..end] {
        "" => None,
        digits => Some(digits.parse().ok().filter(|number| *number <= MAX_WIDTH).ok_or_else(too_wide)?),
    };
    Ok((number, &text[end..]))
}

fn too_wide() -> Box<Error> {
    Error::runtime(format!("a formatted field has at most {MAX_WIDTH} characters"))
}
