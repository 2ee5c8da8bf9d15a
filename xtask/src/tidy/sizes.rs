//! Files and functions stay small enough to read at once.

use super::{Check, Finding};
use crate::rust_source::{code_only, functions};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "sizes",
    rule: "files have at most 800 lines (400 warns), functions at most 80 outside tests",
    run,
};

const FILE_WARNING: usize = 400;
const FILE_LIMIT: usize = 800;
const FUNCTION_LIMIT: usize = 80;

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".rs") {
        match text.lines().count() {
            lines if lines > FILE_LIMIT => findings.push(Finding::error(path, format!("{lines} lines"))),
            lines if lines > FILE_WARNING => findings.push(Finding::warning(path, format!("{lines} lines"))),
            _ => {}
        }
        // Tests are lists of cases and may be of any length.
        let code = code_only(text);
        let shipped = if is_test(path) { "" } else { code.split("#[cfg(test)]").next().unwrap_or_default() };
        for function in functions(shipped) {
            if function.lines > FUNCTION_LIMIT {
                let text = format!("`{}` has {} lines", function.name, function.lines);
                findings.push(Finding::error(format!("{path}:{}", function.line), text));
            }
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Level;

    #[test]
    fn long_files_warn_then_fail() {
        for (lines, level) in [(400, None), (401, Some(Level::Warning)), (801, Some(Level::Error))] {
            let found = run(&Tree::of(&[("a.rs", &"//\n".repeat(lines))]));
            assert_eq!(found.first().map(|finding| finding.level), level, "{lines} lines");
        }
    }

    #[test]
    fn long_function_is_found_at_its_line() {
        let source = |body: usize| format!("\nfn long() {{\n{}}}\n", "    f();\n".repeat(body));
        assert_eq!(run(&Tree::of(&[("a.rs", &source(78))])), []);
        let found = run(&Tree::of(&[("a.rs", &source(79))]));
        assert_eq!(found, [Finding::error("a.rs:2", "`long` has 81 lines")]);
        assert_eq!(run(&Tree::of(&[("a/tests/a.rs", &source(79))])), []);
    }
}
