//! Padding of texts to a width.

use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value, required};

/// `ljust`, `rjust`, `center` and `zfill`.
pub(super) fn pad(budget: &Budget, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [width, fill] = args.bind_positional()?;
    let width = usize::try_from(required(width, "width")?.expect_int()?.max(0)).unwrap_or(usize::MAX);
    let fill = match fill {
        Some(fill) if name != "zfill" => fill.expect_text()?.clone(),
        Some(_) => return Err(Error::runtime("zfill() takes exactly one argument")),
        None => Text::template(if name == "zfill" { "0" } else { " " }),
    };
    if fill.count() != 1 {
        return Err(Error::runtime("the fill character must be exactly one character long"));
    }
    let missing = width.saturating_sub(text.count());
    let padded = match name {
        "ljust" => padded(budget, text, &fill, [0, missing], 0),
        "center" => center(budget, text, &fill, width),
        "zfill" => {
            let sign = usize::from(text.as_str().starts_with(['+', '-']));
            padded(budget, text, &fill, [missing, 0], sign)
        }
        _ => padded(budget, text, &fill, [missing, 0], 0),
    };
    padded.map(Value::Text)
}

/// `str.center`.
pub(crate) fn center(budget: &Budget, text: &Text, fill: &Text, width: usize) -> Result<Text> {
    let missing = width.saturating_sub(text.count());
    // The odd blank goes to the left if the width is odd.
    let left = missing / 2 + (missing & width & 1);
    padded(budget, text, fill, [left, missing - left], 0)
}

/// Pads a text on both sides; the left padding comes after the first `sign` bytes.
fn padded(budget: &Budget, text: &Text, fill: &Text, [left, right]: [usize; 2], sign: usize) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    out.slice(text, 0..sign)?;
    out.repeat(fill, left)?;
    out.slice(text, sign..text.len())?;
    out.repeat(fill, right)?;
    Ok(out.finish().with_markup(text.is_markup()))
}

/// `expandtabs`: pads with blanks to the next column that is a multiple of the tab size.
pub(super) fn expand_tabs(budget: &Budget, text: &Text, args: Args) -> Result<Value> {
    let [size] = args.bind(["tabsize"])?;
    let size = i32::try_from(size.map_or(Ok(8), |size| size.expect_int())?);
    let size = size.map_err(|_| Error::runtime("Python int too large to convert to C int"))?;
    let size = usize::try_from(size).unwrap_or(0);
    let mut out = TextWriter::new(budget);
    let mut column = 0_usize;
    for (origin, segment) in text.segments() {
        for c in segment.chars() {
            budget.step()?;
            match c {
                '\t' => {
                    let blanks = if size > 0 { size - column % size } else { 0 };
                    out.repeat(&Text::new(" ", origin), blanks)?;
                    column = column.saturating_add(blanks);
                }
                c => {
                    column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                    out.push(c.encode_utf8(&mut [0; 4]), origin)?;
                }
            }
        }
    }
    Ok(Value::Text(out.finish().with_markup(text.is_markup())))
}
