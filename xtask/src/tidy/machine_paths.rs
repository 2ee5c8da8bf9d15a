//! No file contains a machine-specific absolute path.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "machine-paths",
    rule: "paths are relative: no home folder and no other machine's root",
    run,
};

/// First components of machine-specific absolute paths, without the leading separator.
const FOLDERS: &[&str] = &["home", "root", "work", "Users", "mnt"];

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Lines of `.jsonl` are data: conversations may mention any path.
    for (path, text) in tree.texts("").filter(|(path, _)| !path.ends_with(".jsonl")) {
        for (number, line) in text.lines().enumerate() {
            if let Some(found) = machine_path(line) {
                findings.push(Finding::error(format!("{path}:{}", number + 1), format!("names `{found}`")));
            }
        }
    }
    findings
}

/// Finds the first two components of such a path, if it begins there (not inside a URL or a relative path).
fn machine_path(line: &str) -> Option<&str> {
    for (at, _) in line.match_indices('/') {
        let goes_on = line[..at]
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | '}' | '>' | '~'));
        let mut parts = line[at + 1..].splitn(3, '/');
        let folder = parts.next().unwrap_or_default();
        let name = parts.next().unwrap_or_default();
        let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if !goes_on && FOLDERS.contains(&folder) && !name.is_empty() {
            return Some(&line[at..at + 2 + folder.len() + name.len()]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_folder_is_found_and_named() {
        let path = ["", "home", "someone", "model"].join("/");
        assert_eq!(
            machine_path(&format!("let a = \"{path}\";")),
            Some(["", "home", "someone"].join("/").as_str())
        );
    }

    #[test]
    fn relative_paths_and_addresses_pass() {
        for line in ["https://example.org/home/page", "../work/x", "a/home/b", "/usr/lib", "{root}/work/x"] {
            assert_eq!(machine_path(line), None, "{line}");
        }
    }
}
