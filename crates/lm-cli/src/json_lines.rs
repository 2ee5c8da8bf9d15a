//! Input and output of JSON Lines commands: one value per line on standard input, one per line on standard output, in order.

use std::io::{self, BufRead, Read, Write};

use serde_json::{Map, Value, json};

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Answers each line of standard input with `answer`, and flushes after each. Blank lines are skipped.
///
/// A line that is no JSON object, or too long, is answered with an error of kind `bad_line`, and reading continues.
pub fn answer_each(mut answer: impl FnMut(Map<String, Value>) -> Value) -> io::Result<()> {
    answer_values(|value| object(value).map_or_else(bad_line, &mut answer))
}

/// [`answer_each`] for lines of any JSON value.
pub fn answer_values(answer: impl FnMut(Value) -> Value) -> io::Result<()> {
    answer_lines(io::stdin().lock(), io::stdout().lock(), answer)
}

/// Creates the error answer to a line.
pub fn error(kind: &str, message: impl std::fmt::Display) -> Value {
    json!({"error": {"kind": kind, "message": message.to_string()}})
}

/// Creates the error answer to an invalid line.
pub fn bad_line(message: impl std::fmt::Display) -> Value {
    error("bad_line", message)
}

/// Answers the lines of `input` on `out`, as [`answer_values`] does.
pub fn answer_lines(
    input: impl BufRead,
    mut out: impl Write,
    mut answer: impl FnMut(Value) -> Value,
) -> io::Result<()> {
    for line in values(input) {
        let answered = line?.map_or_else(bad_line, &mut answer);
        writeln!(out, "{answered}")?;
        out.flush()?;
    }
    Ok(())
}

/// Iterates over the non-blank lines: their JSON values, or the error of an invalid line, which names its number.
pub fn values(input: impl BufRead) -> impl Iterator<Item = io::Result<Result<Value, String>>> {
    lines(input).filter_map(|line| match line {
        Ok((_, Line::Blank)) => None,
        line => Some(line.map(|(number, line)| value(number, line))),
    })
}

/// Iterates over all lines up to the last one that is not blank: their JSON objects, or the error of a line that has none, which
/// names its number.
pub fn objects(input: impl BufRead) -> impl Iterator<Item = io::Result<Result<Value, String>>> {
    let mut lines = lines(input);
    let (mut blank, mut next) = (0..0, None);
    std::iter::from_fn(move || {
        if next.is_none() {
            let line = lines.by_ref().find(|line| !matches!(line, Ok((_, Line::Blank))))?;
            blank = blank.end..line.as_ref().map_or(blank.end, |(number, _)| number - 1);
            next = Some(line);
        }
        if let Some(number) = blank.next() {
            return Some(Ok(Err(format!("line {}: the line is blank, expected a JSON object", number + 1))));
        }
        blank.end += 1;
        let line = next.take()?;
        Some(line.map(|(number, line)| match value(number, line)? {
            value @ Value::Object(_) => Ok(value),
            _ => Err(format!("line {number}: expected a JSON object")),
        }))
    })
}

fn value(number: usize, line: Line) -> Result<Value, String> {
    let bytes = match line {
        Line::Blank => return Err(format!("line {number}: the line is blank")),
        Line::TooLong => return Err(format!("line {number}: the line has more than {MAX_LINE_BYTES} bytes")),
        Line::Whole(bytes) => bytes,
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| format!("line {number}: invalid UTF-8 after {} bytes", error.valid_up_to()))?;
    serde_json::from_str(text).map_err(|error| {
        // The library numbers the lines of this text, which is one.
        let (message, column) = (error.to_string(), error.column());
        let place = format!(" at line {} column {column}", error.line());
        format!("line {number}, column {column}: {}", message.strip_suffix(&place).unwrap_or(&message))
    })
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("expected a JSON object".to_owned()),
    }
}

enum Line {
    /// Whitespace only.
    Blank,
    Whole(Vec<u8>),
    /// A line above the maximum length, read to its end and discarded.
    TooLong,
}

/// Iterates over the lines with their numbers, from 1.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<(usize, Line)>> {
    let lines = std::iter::from_fn(move || next_line(&mut input).transpose());
    (1..).zip(lines).map(|(number, line)| line.map(|line| (number, line)))
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if !bytes.ends_with(b"\n") && bytes.len() as u64 == MAX_LINE_BYTES {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(if bytes.trim_ascii().is_empty() { Line::Blank } else { Line::Whole(bytes) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &[u8]) -> Vec<Value> {
        let mut out = Vec::new();
        let keys = |value| object(value).map_or_else(bad_line, |object| json!({"keys": object.len()}));
        answer_lines(input, &mut out, keys).expect("memory does not fail");
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).expect("an answer is JSON")).collect()
    }

    #[test]
    fn a_bad_line_is_answered_and_the_next_goes_on() {
        let answers = answers(b"{\"a\": 1}\n\n{\"a\": \n[1]\n\xFF\n{}");
        let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
        assert_eq!(kinds, [None, Some("bad_line"), Some("bad_line"), Some("bad_line"), None]);
        assert_eq!((&answers[0], &answers[4]), (&json!({"keys": 1}), &json!({"keys": 0})));
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut input = vec![b'x'; MAX_LINE_BYTES as usize + 3];
        input.extend_from_slice(b"\n{}\n");
        let answers = answers(&input);
        assert_eq!((answers.len(), answers[0]["error"]["kind"].as_str()), (2, Some("bad_line")));
        assert_eq!(answers[1], json!({"keys": 0}));
    }

    #[test]
    fn an_error_names_its_line_and_blank_lines_count() {
        let messages = |read: Vec<io::Result<Result<Value, String>>>| -> Vec<Option<String>> {
            read.into_iter().map(|line| line.expect("memory does not fail").err()).collect()
        };
        let input: &[u8] = b"{}\n \n\n{\"a\": x}\n\xFF\n{\"b\": \"\xFF\"}\n[1]\n{}\n\n\r\n";
        let invalid = [
            "line 4, column 7: expected value",
            "line 5: invalid UTF-8 after 0 bytes",
            "line 6: invalid UTF-8 after 7 bytes",
        ]
        .map(|message| Some(message.to_owned()));
        let values = messages(values(input).collect());
        assert_eq!((values.len(), &values[1..4]), (6, &invalid[..]));
        let objects = messages(objects(input).collect());
        let blank = |number| Some(format!("line {number}: the line is blank, expected a JSON object"));
        assert_eq!(
            (objects.len(), &objects[1..3], &objects[3..6]),
            (8, &[blank(2), blank(3)][..], &invalid[..])
        );
        assert_eq!(objects[6].as_deref(), Some("line 7: expected a JSON object"));
    }
}
