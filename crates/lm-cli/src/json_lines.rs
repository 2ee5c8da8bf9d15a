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

/// Iterates over the non-blank lines: their JSON objects, or the error of an invalid line.
pub fn lines(input: impl BufRead) -> impl Iterator<Item = io::Result<Result<Map<String, Value>, String>>> {
    values(input).map(|line| line.map(|value| value.and_then(object)))
}

/// Iterates over the non-blank lines: their JSON values, or the error of an invalid line.
pub fn values(mut input: impl BufRead) -> impl Iterator<Item = io::Result<Result<Value, String>>> {
    std::iter::from_fn(move || next_line(&mut input).transpose()).filter_map(|line| match line {
        Ok(Line::Whole(bytes)) if bytes.trim_ascii().is_empty() => None,
        line => Some(line.map(value)),
    })
}

fn value(line: Line) -> Result<Value, String> {
    match line {
        Line::TooLong => Err(format!("the line has more than {MAX_LINE_BYTES} bytes")),
        Line::Whole(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
    }
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("expected a JSON object".to_owned()),
    }
}

enum Line {
    Whole(Vec<u8>),
    /// A line above the maximum length, read to its end and discarded.
    TooLong,
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE_BYTES {
        return Ok(Some(Line::Whole(bytes)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
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
}
