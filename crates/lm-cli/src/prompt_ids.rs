//! Prompts as token ids: one JSON list per line, from a file or from standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lm_tokenizer::TokenId;
use serde_json::Value;

use crate::json_lines;

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

/// Reads all prompts of a file.
///
/// # Errors
/// When the file cannot be read, or a line is no list of token ids; the error names the prompt.
pub fn read_all(path: &Path) -> Result<Vec<Vec<TokenId>>> {
    let prompt = |(index, line): (usize, io::Result<Result<Value, String>>)| {
        let line = line.with_context(|| path.display().to_string())?;
        let ids = line.and_then(|value| ids(&value)).map_err(anyhow::Error::msg);
        ids.with_context(|| format!("{}, prompt {}", path.display(), index + 1))
    };
    json_lines::values(open(path)?).enumerate().map(prompt).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_a_list_or_holds_one() {
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
