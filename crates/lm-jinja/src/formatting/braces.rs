//! `format.format(values)`.

use super::numbers::{FloatStyle, float, grouped, integer};
use super::{Align, leading_number, meter, pad};
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::origin::Origin;
use crate::python_text;
use crate::text::html::escape;
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value};

/// Cost of checking one named argument in a look-up, in bytes read.
const LOOKUP_COST: usize = 16;

/// Maximum nesting of fields in format specifications: Python's limit.
const MAX_NESTING: usize = 2;

/// Formats fields: `{}`, `{0}`, `{name.attribute[key]!r:>8}`.
pub(crate) fn format(interpreter: &mut Interpreter<'_>, text: &Text, args: &Args) -> Result<Text> {
    let mut next = Numbering::Undecided(0);
    let formatted =
        Formatter { args, markup: text.is_markup() }.run(interpreter, text, &mut next, MAX_NESTING)?;
    Ok(formatted.with_markup(text.is_markup()))
}

struct Formatter<'a> {
    args: &'a Args,
    markup: bool,
}

/// Numbering of fields without a name: automatic (`{}`) or manual (`{0}`), never both.
#[derive(PartialEq)]
enum Numbering {
    Undecided(usize),
    Automatic(usize),
    Manual,
}

impl Formatter<'_> {
    fn run(
        &self,
        interpreter: &mut Interpreter<'_>,
        format: &Text,
        numbering: &mut Numbering,
        nesting: usize,
    ) -> Result<Text> {
        if nesting == 0 {
            return Err(Error::runtime("max string recursion exceeded"));
        }
        let mut out = TextWriter::new(interpreter.budget);
        let text = format.as_str();
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']) {
            let brace = at + found;
            interpreter.budget.step()?;
            out.slice(format, at..brace)?;
            let rest = &text[brace..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                out.slice(format, brace..brace + 1)?;
                at = brace + 2;
                continue;
            }
            let single = || Error::runtime("single brace encountered in format string");
            let end = field_end(rest).ok_or_else(single)?;
            let inner = format.slice(brace + 1..brace + end, interpreter.budget)?;
            out.text(&self.field(interpreter, &inner, numbering, nesting)?)?;
            at = brace + end + 1;
        }
        out.slice(format, at..text.len())?;
        Ok(out.finish())
    }

    fn field(
        &self,
        interpreter: &mut Interpreter<'_>,
        field: &Text,
        numbering: &mut Numbering,
        nesting: usize,
    ) -> Result<Text> {
        let text = field.as_str();
        let name_end = name_end(text);
        let value = self.value(interpreter, &text[..name_end], numbering)?;
        let rest = &text[name_end..];
        let (conversion, spec_at) = match rest.strip_prefix('!') {
            Some(rest) => {
                let conversion =
                    rest.chars().next().ok_or_else(|| Error::runtime("end of string after '!'"))?;
                (Some(conversion), name_end + 1 + conversion.len_utf8())
            }
            None => (None, name_end),
        };
        let spec = match text[spec_at..].strip_prefix(':') {
            Some(spec) => field.slice(field.len() - spec.len()..field.len(), interpreter.budget)?,
            None if spec_at == text.len() => Text::default(),
            None => return Err(Error::runtime("expected ':' after conversion specifier")),
        };
        let value = match conversion {
            None => value,
            Some('s') => Value::Text(python_text::str(interpreter, &value)?),
            Some('r' | 'a') => Value::Text(python_text::repr(interpreter, &value)?),
            Some(other) => return Err(Error::runtime(format!("unknown conversion specifier {other}"))),
        };
        let spec = if spec.is_empty() { spec } else { self.run(interpreter, &spec, numbering, nesting - 1)? };
        let shown = Spec::parse(&spec)?.apply(interpreter, &value)?;
        let is_number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        if self.markup && !is_number { escape(interpreter.budget, &shown) } else { Ok(shown) }
    }

    /// Resolves a field name: an argument, then its attributes and items.
    fn value(
        &self,
        interpreter: &mut Interpreter<'_>,
        name: &str,
        numbering: &mut Numbering,
    ) -> Result<Value> {
        let first = name.find(['.', '[']).unwrap_or(name.len());
        interpreter.budget.read(self.args.named.len().saturating_mul(LOOKUP_COST))?;
        let mut value = self.argument(&name[..first], numbering)?;
        let mut rest = &name[first..];
        while !rest.is_empty() {
            interpreter.budget.step()?;
            let (key, is_attribute) = match rest.strip_prefix('.') {
                Some(attribute) => {
                    (&attribute[..attribute.find(['.', '[']).unwrap_or(attribute.len())], true)
                }
                None => {
                    let key = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                    (key.ok_or_else(|| Error::runtime("missing ']' in format string"))?.0, false)
                }
            };
            if key.is_empty() {
                return Err(Error::runtime("empty attribute in format string"));
            }
            value = match key.parse::<i128>() {
                _ if is_attribute => interpreter.attribute(&value, &Text::template(key))?,
                Ok(index) => interpreter.item(&value, &Value::Int(index))?,
                Err(_) => interpreter.item(&value, &Value::text(key))?,
            };
            rest = &rest[key.len() + if is_attribute { 1 } else { 2 }..];
        }
        Ok(value)
    }

    fn argument(&self, name: &str, numbering: &mut Numbering) -> Result<Value> {
        let mixed = || Error::runtime("cannot mix automatic and manual field numbering");
        let index = match (name.parse::<usize>(), &*numbering) {
            (Ok(_), Numbering::Automatic(_)) => return Err(mixed()),
            (Ok(index), _) => {
                *numbering = Numbering::Manual;
                index
            }
            (Err(_), Numbering::Manual) if name.is_empty() => return Err(mixed()),
            (Err(_), Numbering::Undecided(index) | Numbering::Automatic(index)) if name.is_empty() => {
                let index = *index;
                *numbering = Numbering::Automatic(index + 1);
                index
            }
            _ => {
                let found = self.args.named.iter().find(|(found, _)| found.as_str() == name);
                return found
                    .map(|(_, value)| value.clone())
                    .ok_or_else(|| Error::runtime(format!("no key '{name}'")));
            }
        };
        let value = self.args.positional.get(index).cloned();
        value.ok_or_else(|| Error::runtime("replacement index out of range for positional args tuple"))
    }
}

/// End of the field that starts at the text's first brace; `None` if unterminated, or if that brace is a
/// closing one.
fn field_end(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let mut depth = 0;
    let mut in_key = false;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '[' if depth == 1 => in_key = true,
            ']' => in_key = false,
            '{' if !in_key => depth += 1,
            '}' if !in_key => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// End of a field's name, where its conversion or specification starts.
fn name_end(field: &str) -> usize {
    let mut in_key = false;
    let end = field.char_indices().find(|(_, c)| {
        match c {
            '[' => in_key = true,
            ']' => in_key = false,
            _ => {}
        }
        !in_key && matches!(c, '!' | ':')
    });
    end.map_or(field.len(), |(at, _)| at)
}

/// A format specification: `[[fill]align][sign][#][0][width][grouping][.precision][type]`.
struct Spec {
    fill: Text,
    align: Option<Align>,
    sign: char,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(spec: &Text) -> Result<Self> {
        let mut this = Self {
            fill: Text::template(" "),
            align: None,
            sign: '-',
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        };
        let mut text = spec.as_str();
        let mut characters = text.chars();
        let (first, second) = (characters.next(), characters.next());
        if let (Some(fill), Some(align)) = (first, second.and_then(align)) {
            let origin = spec.segments().next().map_or(Origin::Template, |(origin, _)| origin);
            this.fill = Text::new(fill, origin);
            this.align = Some(align);
            text = &text[fill.len_utf8() + 1..];
        } else if let Some(align) = first.and_then(align) {
            this.align = Some(align);
            text = &text[1..];
        }
        if let Some(sign) = text.chars().next().filter(|c| "+- ".contains(*c)) {
            this.sign = sign;
            text = &text[1..];
        }
        if let Some(rest) = text.strip_prefix('#') {
            this.alternate = true;
            text = rest;
        }
        if let Some(rest) = text.strip_prefix('0') {
            if this.align.is_none() {
                this.align = Some(Align::AfterSign);
                this.fill = Text::template("0");
            }
            text = rest;
        }
        let (width, rest) = leading_number(text)?;
        this.width = width.unwrap_or(0);
        text = rest;
        if let Some(grouping) = text.chars().next().filter(|c| ",_".contains(*c)) {
            this.grouping = Some(grouping);
            text = &text[1..];
        }
        if let Some(rest) = text.strip_prefix('.') {
            let (precision, rest) = leading_number(rest)?;
            this.precision =
                Some(precision.ok_or_else(|| Error::runtime("format specifier missing precision"))?);
            text = rest;
        }
        let mut kind = text.chars();
        this.kind = kind.next();
        if kind.next().is_some() { Err(Error::runtime("invalid format specifier")) } else { Ok(this) }
    }

    fn apply(&self, interpreter: &mut Interpreter<'_>, value: &Value) -> Result<Text> {
        if self.is_empty() {
            return python_text::str(interpreter, value);
        }
        meter(interpreter, self.precision)?;
        let is_number = value.as_float().is_some();
        let shown = match value {
            Value::Text(_) => self.text(interpreter, value)?,
            _ if is_number => self.number(value)?,
            other => {
                let kind = other.type_name();
                return Err(Error::runtime(format!("unsupported format string passed to {kind}.__format__")));
            }
        };
        let align = self.align.unwrap_or(if is_number { Align::Right } else { Align::Left });
        if !is_number && align == Align::AfterSign && self.fill.as_str() != "0" {
            return Err(Error::runtime("'=' alignment not allowed in string format specifier"));
        }
        let align = if is_number || align != Align::AfterSign { align } else { Align::Left };
        let mut out = TextWriter::new(interpreter.budget);
        pad(&mut out, &shown, &self.fill, align, self.width)?;
        Ok(out.finish())
    }

    fn is_empty(&self) -> bool {
        self.width == 0
            && self.align.is_none()
            && self.sign == '-'
            && !self.alternate
            && (self.grouping, self.precision, self.kind) == (None, None, None)
    }

    fn text(&self, interpreter: &Interpreter<'_>, value: &Value) -> Result<Text> {
        if self.kind.is_some_and(|kind| kind != 's') || self.grouping.is_some() || self.sign != '-' {
            return Err(Error::runtime("invalid format specifier for 'str'"));
        }
        let text = python_text::str(interpreter, value)?;
        let Some(precision) = self.precision else { return Ok(text) };
        let end = text.as_str().char_indices().nth(precision).map_or(text.len(), |(at, _)| at);
        text.slice(0..end, interpreter.budget)
    }

    fn number(&self, value: &Value) -> Result<Text> {
        let (negative, digits) = match (value.as_int(), self.kind) {
            (Some(code), Some('c')) => {
                let code = u32::try_from(code).ok().and_then(char::from_u32);
                let code = code.ok_or_else(|| Error::runtime("%c arg not in range(0x110000)"))?;
                return Ok(Text::new(code, Origin::Content));
            }
            (Some(number), None | Some('d' | 'n' | 'x' | 'X' | 'o' | 'b')) if self.precision.is_none() => {
                (number < 0, integer(number, self.kind.unwrap_or('d')))
            }
            (Some(_), None) => {
                return Err(Error::runtime("precision not allowed in integer format specifier"));
            }
            _ => self.float(value)?,
        };
        let size = if matches!(self.kind, Some('x' | 'X' | 'o' | 'b')) { 4 } else { 3 };
        let digits = match self.grouping {
            Some(separator) => grouped(&digits, separator, size),
            None => digits,
        };
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, '+') => "+",
            (false, ' ') => " ",
            _ => "",
        };
        let prefix = match self.kind {
            Some('x') if self.alternate => "0x",
            Some('X') if self.alternate => "0X",
            Some('o') if self.alternate => "0o",
            Some('b') if self.alternate => "0b",
            _ => "",
        };
        Ok(Text::template(format!("{sign}{prefix}{digits}")))
    }

    fn float(&self, value: &Value) -> Result<(bool, String)> {
        let number = value.as_float().unwrap_or(f64::NAN);
        let negative = number.is_sign_negative() && !number.is_nan();
        let digits = self.precision.unwrap_or(6);
        let text = match self.kind {
            None if self.precision.is_none() => python_text::float(number.abs()),
            // Between fixed and general: a float keeps one digit after the decimal point.
            None => {
                let text = float(number, FloatStyle::General, digits, false);
                if text.contains(['.', 'e', 'n']) { text } else { text + ".0" }
            }
            Some('f' | 'F') => float(number, FloatStyle::Fixed, digits, self.alternate),
            Some('e' | 'E') => float(number, FloatStyle::Exponent, digits, self.alternate),
            Some('g' | 'G' | 'n') => float(number, FloatStyle::General, digits, self.alternate),
            Some('%') => float(number * 100.0, FloatStyle::Fixed, digits, self.alternate) + "%",
            Some(kind) => {
                let kind_of = value.type_name();
                return Err(Error::runtime(format!(
                    "unknown format code '{kind}' for object of type '{kind_of}'"
                )));
            }
        };
        let upper = self.kind.is_some_and(|kind| kind.is_ascii_uppercase());
        Ok((negative, if upper { text.to_uppercase() } else { text }))
    }
}

fn align(c: char) -> Option<Align> {
    Some(match c {
        '<' => Align::Left,
        '>' => Align::Right,
        '^' => Align::Center,
        '=' => Align::AfterSign,
        _ => return None,
    })
}
