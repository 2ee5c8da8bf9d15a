//! The examples run, and are no longer than the code of the documents whose flows they show.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../examples/langchain_agent.rs"]
mod langchain_agent;
#[path = "../examples/langchain_tool_calling.rs"]
mod langchain_tool_calling;
#[path = "../examples/transformers_tool_use.rs"]
mod transformers_tool_use;

#[test]
fn langchain_example_runs() {
    langchain_tool_calling::main().expect("it runs to its end");
}

#[test]
fn search_tool_of_the_agent_example_finds_pages() {
    langchain_agent::main().expect("it runs to its end");
    let found = serde_json::to_value(langchain_agent::search("height of the Eiffel Tower".to_owned()));
    let found = found.expect("JSON");
    assert_eq!(found[0]["title"], "Eiffel Tower");
    assert!(found[0]["score"].as_f64() > found[1]["score"].as_f64(), "{found}");
    assert_eq!(langchain_agent::search("xyz".to_owned()).len(), 0);
}

#[test]
fn transformers_example_runs() {
    transformers_tool_use::main().expect("it runs to its end");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Lines of code: not blank, and no comment. Docs of functions are code here, as the docstrings are: the
/// tools' declarations are made of them.
fn code_lines<'a>(lines: impl Iterator<Item = &'a str>, comment: &str) -> usize {
    let is_code = |line: &&str| match line.trim() {
        "" | "///" => false,
        line => line.starts_with("/// ") || !line.starts_with(comment),
    };
    lines.filter(is_code).count()
}

/// Line ranges of the document that the example names.
fn ranges(example: &str) -> impl Iterator<Item = (usize, usize)> {
    let named = example.split("// Lines ").skip(1).filter_map(|rest| rest.split_once(':'));
    named.flat_map(|(ranges, _)| ranges.split(", ")).filter_map(|range| {
        let (from, to) = range.split_once('-')?;
        from.parse().ok().zip(to.parse().ok())
    })
}

/// Rows of the table of lengths in docs/tool-documents.md: document, example, their lines, ours.
fn lengths(table: &str) -> Vec<[String; 4]> {
    let rows = table.lines().skip_while(|line| !line.starts_with("| document |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.filter_map(|row| row.trim_matches('|').split('|').map(cell).collect::<Vec<_>>().try_into().ok())
        .collect()
}

#[test]
fn examples_are_no_longer_than_their_documents() {
    let table = fs::read_to_string(root().join("docs/tool-documents.md")).expect("the table");
    let lengths = lengths(&table);
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    for [document, example, theirs, ours] in lengths {
        let text = fs::read_to_string(root().join("crates").join(&example)).expect("an example");
        let our_lines = code_lines(text.lines(), "//");
        assert_eq!(ours, our_lines.to_string(), "{example}: docs/tool-documents.md gives another length");
        let their_lines: usize = theirs.parse().expect("a number of lines");
        assert!(our_lines <= their_lines, "{example}: {our_lines} lines, {document} has {their_lines}");

        let shared = std::env::var_os("LM_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
        let Ok(original) = fs::read_to_string(shared.join("reference").join(&document)) else {
            println!("skipped: no {document} in the shared folder");
            continue;
        };
        let lines: Vec<&str> = original.lines().collect();
        let comment = if document.starts_with("litert") { "//" } else { "#" };
        let counted =
            ranges(&text).map(|(from, to)| code_lines(lines[from - 1..to].iter().copied(), comment));
        assert_eq!(counted.sum::<usize>(), their_lines, "{document}: lines of {example}");
    }
}
