//! Input and output of JSON Lines commands: one value per line on standard input, one per line on standard
//! output, in order.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::json_file::BOM;
use crate::suggestion;

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Value of a line, or the description of an invalid line, which names its number.
type Parsed<T> = Result<T, String>;

/// Answers each line of standard input with `answer`, and flushes after each. Blank lines at the end are
/// ignored.
///
/// A line that is blank, too long or not a JSON object is answered with an error of kind `bad_line`; reading
/// continues.
///
/// # Errors
/// When input or output fails, or a line was answered with an error; the message counts these lines.
pub fn answer_each(mut answer: impl FnMut(Map<String, Value>) -> Value) -> Result<()> {
    note_on_terminal();
    answer_lines(objects(io::stdin().lock()), io::stdout().lock(), |line| Ok(answer(line)))
}

/// [`answer_each`] for lines of any JSON value.
pub fn answer_values(mut answer: impl FnMut(Value) -> Value) -> Result<()> {
    note_on_terminal();
    answer_lines(values(io::stdin().lock()), io::stdout().lock(), |line| Ok(answer(line)))
}

/// Prints on standard error that the command waits for standard input, if that is a terminal.
pub fn note_on_terminal() {
    if io::stdin().is_terminal() {
        eprintln!("reading lines of JSON from standard input; Ctrl-D ends them, --help describes them");
    }
}

/// Creates the error answer to a line.
pub fn error(kind: &str, message: impl std::fmt::Display) -> Value {
    json!({"error": {"kind": kind, "message": message.to_string()}})
}

/// Creates the error answer to an invalid line.
pub fn bad_line(message: impl std::fmt::Display) -> Value {
    error("bad_line", message)
}

/// Keys of notes in files of test vectors; no command reads them.
const NOTES: [&str; 7] = ["about", "expected", "id", "name", "source", "streaming", "variants"];

/// Reads the fields of a line of test vectors, whose notes are ignored. The error is the answer to the line.
pub fn vector<T: DeserializeOwned>(mut line: Map<String, Value>) -> Result<T, Value> {
    line.retain(|key, _| !NOTES.contains(&key.as_str()));
    serde_json::from_value(line.into()).map_err(|error| bad_line(suggestion::of_json(&error)))
}

/// Answers `lines` on `out`, as [`answer_each`] does. An error of `answer` ends it.
pub fn answer_lines<T>(
    lines: impl Iterator<Item = io::Result<Parsed<T>>>,
    mut out: impl Write,
    mut answer: impl FnMut(T) -> Result<Value>,
) -> Result<()> {
    let (mut answered, mut failed) = (0_usize, 0_usize);
    for line in lines {
        let answer = match line.context("the input cannot be read")? {
            Ok(line) => answer(line)?,
            Err(message) => bad_line(message),
        };
        answered += 1;
        failed += usize::from(answer.get("error").is_some());
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    ensure!(failed == 0, "{failed} of {answered} lines failed");
    Ok(())
}

/// Iterates over the JSON values of all lines up to the last one that is not blank. A blank line before it is
/// invalid.
pub fn values(input: impl BufRead) -> impl Iterator<Item = io::Result<Parsed<Value>>> {
    parsed(input, Ok)
}

/// [`values`] of lines that must be JSON objects.
pub fn objects(input: impl BufRead) -> impl Iterator<Item = io::Result<Parsed<Map<String, Value>>>> {
    parsed(input, |value| match value {
        Value::Object(object) => Ok(object),
        _ => Err("expected a JSON object"),
    })
}

fn parsed<T>(
    input: impl BufRead,
    convert: fn(Value) -> Result<T, &'static str>,
) -> impl Iterator<Item = io::Result<Parsed<T>>> {
    let mut lines = lines(input);
    let (mut blank, mut next) = (0..0, None);
    std::iter::from_fn(move || {
        if next.is_none() {
            let line = lines.by_ref().find(|line| !matches!(line, Ok((_, Line::Blank))))?;
            blank = blank.end..line.as_ref().map_or(blank.end, |(number, _)| number - 1);
            next = Some(line);
        }
        if let Some(number) = blank.next() {
            return Some(Ok(Err(format!("line {}: the line is blank", number + 1))));
        }
        blank.end += 1;
        let line = next.take()?;
        Some(line.map(|(number, line)| {
            convert(value(number, line)?).map_err(|message| format!("line {number}: {message}"))
        }))
    })
}

fn value(number: usize, line: Line) -> Parsed<Value> {
    let bytes = match line {
        Line::Blank => return Err(format!("line {number}: the line is blank")),
        Line::TooLong => return Err(format!("line {number}: the line has more than {MAX_LINE_BYTES} bytes")),
        Line::Whole(bytes) => bytes,
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| format!("line {number}: invalid UTF-8 after {} bytes", error.valid_up_to()))?;
    lm_template::json_from_slice(text.as_bytes()).map_err(|error| {
        // The library counts the lines of this text, which has one.
        let (message, column) = (error.to_string(), error.column());
        let place = format!(" at line {} column {column}", error.line());
        format!("line {number}, column {column}: {}", message.strip_suffix(&place).unwrap_or(&message))
    })
}

enum Line {
    /// Whitespace only.
    Blank,
    Whole(Vec<u8>),
    /// A line above the maximum length, read to its end and discarded.
    TooLong,
}

impl Line {
    fn of(bytes: Vec<u8>) -> Self {
        if bytes.trim_ascii().is_empty() { Self::Blank } else { Self::Whole(bytes) }
    }

    /// Removes a byte order mark at the start.
    fn without_bom(self) -> Self {
        match self {
            Self::Whole(bytes) => {
                Self::of(bytes.strip_prefix(BOM.as_bytes()).map_or(bytes.clone(), Vec::from))
            }
            other => other,
        }
    }
}

/// Iterates over the lines with their numbers, from 1.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<(usize, Line)>> {
    let lines = std::iter::from_fn(move || next_line(&mut input).transpose());
    (1..)
        .zip(lines)
        .map(|(number, line)| line.map(|line| (number, if number == 1 { line.without_bom() } else { line })))
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
    Ok(Some(Line::of(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers to `input`, and the error at its end.
    fn answered(input: &[u8]) -> (Vec<Value>, Option<String>) {
        let mut out = Vec::new();
        let keys = |object: Map<String, Value>| Ok(json!({"keys": object.len()}));
        let end = answer_lines(objects(input), &mut out, keys);
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let answers = lines.map(|line| serde_json::from_slice(line).expect("an answer is JSON")).collect();
        (answers, end.err().map(|error| error.to_string()))
    }

    #[test]
    fn every_line_is_answered_and_failures_counted() {
        let (answers, error) = answered(b"{\"a\": 1}\n\n{\"a\": \n[1]\n\xFF\n{}\n\n");
        let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
        let bad = Some("bad_line");
        assert_eq!(kinds, [None, bad, bad, bad, bad, None]);
        assert_eq!((&answers[0], &answers[5]), (&json!({"keys": 1}), &json!({"keys": 0})));
        assert_eq!(error.as_deref(), Some("4 of 6 lines failed"));
        assert_eq!(answered(b"{}\n \n"), (vec![json!({"keys": 0})], None));
    }

    #[test]
    fn byte_order_mark_is_skipped_in_the_first_line() {
        assert_eq!(answered("\u{feff}{}\n{}".as_bytes()), (vec![json!({"keys": 0}); 2], None));
        assert_eq!(answered("\u{feff}\n".as_bytes()), (vec![], None));
        assert_eq!(answered("{}\n\u{feff}{}".as_bytes()).1.as_deref(), Some("1 of 2 lines failed"));
    }

    #[test]
    fn endless_line_is_not_buffered() {
        let mut input = vec![b'x'; MAX_LINE_BYTES as usize + 3];
        input.extend_from_slice(b"\n{}\n");
        let (answers, _) = answered(&input);
        assert_eq!((answers.len(), answers[0]["error"]["kind"].as_str()), (2, Some("bad_line")));
        assert_eq!(answers[1], json!({"keys": 0}));
    }

    #[test]
    fn error_line_numbers_count_blank_lines() {
        let input: &[u8] = b"{}\n \n\n{\"a\": x}\n\xFF\n{\"b\": \"\xFF\"}\n[1]\n{}\n\n\r\n";
        let errors: Vec<_> = objects(input).map(|line| line.expect("memory does not fail").err()).collect();
        let expected = [
            "line 2: the line is blank",
            "line 3: the line is blank",
            "line 4, column 7: expected value",
            "line 5: invalid UTF-8 after 0 bytes",
            "line 6: invalid UTF-8 after 7 bytes",
            "line 7: expected a JSON object",
        ];
        assert_eq!((errors.len(), &errors[0], &errors[7]), (8, &None, &None));
        assert_eq!(errors[1..7], expected.map(|message| Some(message.to_owned())));
        assert!(values(input).nth(6).is_some_and(|line| line.is_ok_and(|line| line == Ok(json!([1])))));
    }
}
