//! Formats of the reply: grammars, schemas and regular expressions of the command line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lm_processors::{Layout, gbnf_grammar, is_gbnf, json_grammar};
use serde_json::Value;

use crate::args::usage;
use crate::json_file;

/// Maximum size of a file with a grammar.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a grammar as Lark text: the grammar itself, or the file of that path.
pub fn read_grammar(grammar: &str) -> Result<String> {
    let text = match is_grammar_text(grammar) {
        true => grammar.to_owned(),
        false => read_file(grammar).with_context(|| format!("--grammar {grammar} cannot be read"))?,
    };
    if !is_gbnf(&text) {
        return Ok(text);
    }
    Ok(gbnf_grammar(&text).with_context(|| grammar_name(grammar))?.lark)
}

/// Reads a file of at most 16 MiB.
fn read_file(path: &str) -> Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
    Ok(text)
}

fn is_grammar_text(grammar: &str) -> bool {
    grammar.contains("::=") || grammar.contains('\n') || grammar.trim_start().starts_with("start:")
}

/// Option and file of a grammar, for errors.
pub fn grammar_name(grammar: &str) -> String {
    if is_grammar_text(grammar) { "--grammar".to_owned() } else { format!("--grammar {grammar}") }
}

/// Checks the syntax of a regular expression.
pub fn regex(pattern: &str) -> Result<String, String> {
    match regex_syntax::parse(pattern) {
        Ok(_) => Ok(pattern.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a schema: JSON text that begins with `{`, or the file of that path.
///
/// # Errors
/// When it is not JSON, or not a schema that a grammar can be made of.
pub fn read_schema(schema: &str) -> Result<Value> {
    let schema: Value = match schema.trim_start().starts_with('{') {
        true => serde_json::from_str(schema)
            .map_err(|error| usage(format!("--schema: the text is not JSON: {error}")))?,
        false => json_file::read(Path::new(schema)).with_context(|| format!("--schema {schema}"))?,
    };
    json_grammar(&schema, Layout::Exact).context("--schema")?;
    Ok(schema)
}
