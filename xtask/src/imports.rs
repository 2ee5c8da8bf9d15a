//! Paths by which the files of a crate name each other.

use std::collections::BTreeMap;

use crate::rust_source::code_only;
use crate::tree::Tree;

/// A module of a crate, as segments from the crate root, which is empty.
pub type Module = Vec<String>;

/// Path inside a crate that the code of a module names.
pub struct Import {
    /// Segments from the crate root.
    pub path: Vec<String>,
    /// Line, from 1.
    pub line: usize,
}

/// Source files of a crate by module. Tests and crate roots are left out.
pub fn files(tree: &Tree, krate: &str) -> BTreeMap<Module, String> {
    let folder = format!("crates/{krate}/src");
    let inside = tree.below(&folder).filter(|file| !matches!(*file, "lib.rs" | "main.rs"));
    let module = |file: &str| -> Option<Module> {
        let path = file.strip_suffix(".rs")?.split('/').filter(|part| *part != "mod").map(str::to_owned);
        let path: Module = path.collect();
        let is_test = path.iter().any(|part| part == "tests" || part.ends_with("_tests"));
        (!is_test).then_some(path)
    };
    inside.filter_map(|file| Some((module(file)?, format!("{folder}/{file}")))).collect()
}

/// Code of a file without comments, texts and unit tests.
pub fn shipped_code(tree: &Tree, file: &str) -> String {
    let mut code = code_only(tree.text(file).unwrap_or_default());
    let is_inline =
        |at: usize| code[at..].find(['{', ';']).is_some_and(|end| code[at + end..].starts_with('{'));
    let tests = code.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(|at| is_inline(*at));
    code.truncate(tests.unwrap_or(code.len()));
    code
}

/// Paths through `crate::` and `super::` in the code of a module.
pub fn imports(code: &str, module: &[String]) -> Vec<Import> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let paths = expand(&code[at..]).into_iter().map(|path| absolute(path, module));
            found.extend(paths.map(|path| Import { path, line }));
        }
    }
    found
}

/// Resolves `crate`, `self` and leading `super` segments.
pub fn absolute(path: Vec<&str>, module: &[String]) -> Module {
    let up = path.iter().take_while(|part| **part == "super").count();
    let base = match path.first() {
        Some(&"crate") => &[],
        _ => &module[..module.len().saturating_sub(up)],
    };
    let rest = path.into_iter().filter(|part| !matches!(*part, "crate" | "super" | "self"));
    base.iter().cloned().chain(rest.map(str::to_owned)).collect()
}

/// Paths of the use tree at the start of `code`, or the one path there.
pub fn expand(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    tree_paths(code, &[], &mut found);
    found
}

/// Collects the paths of a use tree; returns the code after it.
fn tree_paths<'a>(code: &'a str, base: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let mut path = base.to_vec();
    let mut rest = code.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            return group_paths(group, &path, found);
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            path.push(&rest[..end]);
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(after) => rest = after.trim_start(),
            None => break,
        }
    }
    found.push(path);
    rest
}

/// Collects the paths of a group after its brace; returns the code after it.
fn group_paths<'a>(code: &'a str, base: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let mut rest = code.trim_start();
    while !rest.is_empty() && !rest.starts_with('}') {
        rest = tree_paths(rest, base, found);
        // What is left of an item is a rename or a glob.
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        rest = rest[end..].trim_start_matches(',').trim_start();
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_expand_to_their_paths() {
        let paths = |code| expand(code).iter().map(|path| path.join("::")).collect::<Vec<_>>();
        assert_eq!(paths("crate::a::B;"), ["crate::a::B"]);
        assert_eq!(paths("crate::a::b(c::d)"), ["crate::a::b"]);
        assert_eq!(
            paths("crate::{\n    a::{self, B as C},\n    d::*,\n    e,\n};\nuse x::y;"),
            ["crate::a::self", "crate::a::B", "crate::d", "crate::e"]
        );
    }

    #[test]
    fn code_after_inline_tests_is_left_out() {
        let code = |text| shipped_code(&Tree::of(&[("a.rs", text)]), "a.rs");
        assert_eq!(code("#[cfg(test)]\nmod tests;\nuse a::B;\n"), "#[cfg(test)]\nmod tests;\nuse a::B;\n");
        assert_eq!(code("use a::B;\n#[cfg(test)]\nmod tests {}\n"), "use a::B;\n");
    }

    #[test]
    fn paths_are_resolved_from_the_module() {
        let module = ["a".to_owned(), "b".to_owned()];
        let found = |code| imports(code, &module).into_iter().map(|import| import.path.join("::"));
        let code =
            "use super::c::D;\nuse super::super::e::F;\nfn f() { crate::g::h() }\nuse other::crate_::X;";
        assert_eq!(found(code).collect::<Vec<_>>(), ["g::h", "a::c::D", "e::F"]);
        assert_eq!(imports(code, &module)[1].line, 1);
    }
}
