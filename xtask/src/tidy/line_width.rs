//! Lines of comments and of Markdown have one width.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "line-width",
    rule: "comments and Markdown paragraphs are wrapped at 110 columns; tables, code and headings may be wider",
    run,
};

/// Maximum width, as in rustfmt.toml.
const MAX_WIDTH: usize = 110;
/// Folders of files that programs of others write or compare byte for byte.
const OTHERS: &[&str] = &["testdata/", "models/"];

fn run(tree: &Tree) -> Vec<Finding> {
    let markdown = tree.texts(".md").map(|file| (file, None));
    let comments = tree.texts(".rs").map(|file| (file, Some("//")));
    let files =
        markdown.chain(comments).filter(|((path, _), _)| !OTHERS.iter().any(|other| path.starts_with(other)));
    files
        .flat_map(|((path, text), marker)| {
            let wide = wide_lines(text, marker).into_iter();
            wide.map(move |line| {
                Finding::error(format!("{path}:{line}"), format!("wider than {MAX_WIDTH} columns"))
            })
        })
        .collect()
}

/// Lines that are wider than allowed and can be divided; with a `marker`, of comments only.
fn wide_lines(text: &str, marker: Option<&str>) -> Vec<usize> {
    let mut fence = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = match marker {
            None => line,
            Some(marker) => match line.trim_start().strip_prefix(marker) {
                Some(comment) => comment.trim_start_matches(['/', '!']),
                None => {
                    fence = false;
                    continue;
                }
            },
        };
        let is_indented_code = marker.is_none() && line.starts_with("    ");
        let content = content.trim_start();
        fence ^= content.starts_with("```");
        let is_block = fence || is_indented_code || content.starts_with(['#', '|', '>', '<', '!']);
        if !is_block && line.chars().count() > MAX_WIDTH && can_be_divided(content) {
            found.push(index + 1);
        }
    }
    found
}

/// Returns true if a paragraph's line has a space outside of code spans, after the mark of a list.
fn can_be_divided(content: &str) -> bool {
    let words = content
        .split_once(' ')
        .filter(|(mark, _)| matches!(*mark, "-" | "*" | "//"))
        .map_or(content, |(_, rest)| rest);
    let parts = words.split('`').enumerate();
    let text: String = parts.map(|(index, part)| if index % 2 == 0 { part } else { "`" }).collect();
    text.trim().contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(word: &str) -> String {
        word.repeat(111_usize.div_ceil(word.len()))
    }

    #[test]
    fn wide_paragraphs_and_comments_are_found() {
        assert_eq!(wide_lines(&long("word "), None), [1]);
        assert_eq!(wide_lines(&format!("    /// {}\nlet a = 1;", long("word ")), Some("//")), [1]);
        assert_eq!(wide_lines(&format!("let a = \"{}\";", long("word ")), Some("//")), [0; 0]);
    }

    #[test]
    fn tables_code_and_long_words_may_be_wide() {
        let (words, word) = (long("word "), long("word"));
        for text in [format!("| {words} |"), format!("```\n{words}\n```"), format!("# {words}"), word.clone()]
        {
            assert_eq!(wide_lines(&text, None), [0; 0], "{text}");
        }
        assert_eq!(wide_lines(&format!("- `{words}`"), None), [0; 0]);
        assert_eq!(wide_lines(&format!("    {words}"), None), [0; 0]);
        assert_eq!(wide_lines(&format!("/// ```\n/// {words}\n/// ```"), Some("//")), [0; 0]);
    }
}
