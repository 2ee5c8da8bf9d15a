//! Prompts as token ids: one JSON list per line, from a file or from standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, ensure};
use lm_tokenizer::TokenId;
use serde_json::Value;

use crate::json_lines::values;

/// Maximum size of a file.
const MAX_BYTES: u64 = 1 << 30;

/// Opens `path`; `-` is standard input. A file above [`MAX_BYTES`] is an error; standard input is cut there.
pub fn open(path: &Path) -> Result<impl BufRead> {
    let (input, bytes): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), 0)
    } else {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(file), bytes)
    };
    ensure!(bytes <= MAX_BYTES, "{}: {bytes} bytes, at most {MAX_BYTES} are read", path.display());
    Ok(BufReader::new(input.take(MAX_BYTES)))
}

/// A prompt with its place in the file.
#[derive(Debug, PartialEq)]
pub struct Prompt {
    /// Number of its line, from 1.
    pub line: usize,
    pub ids: Vec<TokenId>,
}

/// Reads all prompts of a file; blank lines at the end are ignored.
///
/// # Errors
/// When the file cannot be read or a line is not a list of token ids; the error names the line.
pub fn read_all(path: &Path) -> Result<Vec<Prompt>> {
    read_prompts(open(path)?).with_context(|| path.display().to_string())
}

fn read_prompts(input: impl BufRead) -> Result<Vec<Prompt>> {
    let prompt = |(line, value): (usize, io::Result<Result<Value, String>>)| {
        let ids = ids(&value?.map_err(Error::msg)?).map_err(|error| anyhow!("line {line}: {error}"))?;
        Ok(Prompt { line, ids })
    };
    (1..).zip(values(input)).map(prompt).collect()
}

/// Parses the ids of a line: a list, or an object with a list as `ids`.
///
/// # Errors
/// A description of the defect.
pub fn ids(line: &Value) -> Result<Vec<TokenId>, String> {
    let list = match line {
        Value::Object(object) => object.get("ids").and_then(Value::as_array),
        line => line.as_array(),
    };
    let list = list.ok_or("expected a list of token ids, or an object with such a list as `ids`")?;
    let id = |(index, value): (usize, &Value)| {
        let id = value.as_u64().and_then(|id| TokenId::try_from(id).ok());
        id.ok_or_else(|| format!("item {index} of the list is {value}, expected a token id"))
    };
    list.iter().enumerate().map(id).collect()
}

/// Checks that all ids are below `width`, the number of ids of the model.
///
/// # Errors
/// A message with the first id that is not.
pub fn check_known(ids: &[TokenId], width: usize) -> Result<(), String> {
    match ids.iter().find(|&&id| id as usize >= width) {
        Some(id) => Err(format!("token id {id}, the model has ids below {width}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_line_error_has_its_file_line_number() {
        let prompts = read_prompts(&b"[1]\n[2, 3]\n\n"[..]).expect("are right");
        let lines: Vec<_> = prompts.iter().map(|prompt| (prompt.line, prompt.ids.len())).collect();
        assert_eq!(lines, [(1, 1), (2, 2)]);
        for (text, expected) in [
            (&b"[1]\n[2]\n[x]"[..], "line 3, column 2: "),
            (b"[1]\n\n[2]", "line 2: the line is blank"),
            (b"[1]\n\xff", "line 2: "),
            (b"{}", "line 1: "),
        ] {
            let error = format!("{:#}", read_prompts(text).expect_err("is refused"));
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn line_is_a_list_or_contains_one() {
        assert_eq!(ids(&json!([3, 0, 4_294_967_295_u32])), Ok(vec![3, 0, TokenId::MAX]));
        assert_eq!(ids(&json!({"ids": []})), Ok(vec![]));
        for (line, expected) in [
            (json!("3"), "expected a list"),
            (json!({"text": "3"}), "`ids`"),
            (json!([1, -1]), "item 1 of the list is -1"),
            (json!([4_294_967_296_u64]), "item 0"),
            (json!([1.5]), "1.5"),
        ] {
            let error = ids(&line).expect_err("is refused");
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
