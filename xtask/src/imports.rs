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

/// Handling of `pub use` lines among the imports of a module.
#[derive(Clone, Copy, PartialEq)]
pub enum ReExports {
    Counted,
    Ignored,
}

/// Source files of a crate without tests, and what their modules re-export.
pub struct CrateSource {
    /// Files by module, without the crate root.
    pub files: BTreeMap<Module, String>,
    code: BTreeMap<Module, String>,
    /// Modules that define what a module re-exports, by name; the crate root has the empty path.
    exports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl CrateSource {
    pub fn read(tree: &Tree, krate: &str) -> Self {
        let files = files(tree, krate);
        let code = files.iter().map(|(module, file)| (module.clone(), shipped_code(tree, file))).collect();
        let mut source = Self { files, code, exports: BTreeMap::new() };
        let root = (Module::new(), shipped_code(tree, &format!("crates/{krate}/src/lib.rs")));
        // The second pass follows re-exports of re-exports.
        for _ in 0..2 {
            let code = source.code.iter().chain([(&root.0, &root.1)]);
            let exports =
                code.map(|(module, code)| (module.clone(), source.exports_of(module, code))).collect();
            source.exports = exports;
        }
        source
    }

    /// Paths through `crate::` and `super::` in the code of a module.
    pub fn imports(&self, module: &Module, re_exported: ReExports) -> impl Iterator<Item = Import> {
        let code = self.code.get(module).map(String::as_str).unwrap_or_default();
        let ignored: Vec<&str> =
            if re_exported == ReExports::Ignored { re_exports(code).collect() } else { Vec::new() };
        let blank = |text: &str| text.chars().map(|c| if c == '\n' { c } else { ' ' }).collect::<String>();
        let code =
            ignored.into_iter().fold(code.to_owned(), |code, export| code.replace(export, &blank(export)));
        imports(&code, module).into_iter()
    }

    /// Module whose file defines what a path names, also if another one re-exports it; none for paths that
    /// lead out of the crate.
    pub fn owner(&self, path: &[String]) -> Option<Module> {
        let prefixes = (1..=path.len()).rev().map(|length| &path[..length]);
        let module = prefixes.into_iter().find(|path| self.files.contains_key(*path));
        let exported = path.get(module.map_or(0, <[String]>::len));
        let exported = exported.and_then(|name| self.exports.get(module.unwrap_or_default())?.get(name));
        exported.cloned().or_else(|| module.map(<[String]>::to_vec))
    }

    fn exports_of(&self, module: &Module, code: &str) -> BTreeMap<String, Module> {
        let named = re_exports(code).flat_map(expand).filter_map(|path| {
            let name = (*path.last()?).to_owned();
            Some((name, self.owner(&absolute(path, module))?))
        });
        named.collect()
    }
}

/// Source files of a crate by module, without tests and crate roots.
fn files(tree: &Tree, krate: &str) -> BTreeMap<Module, String> {
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
fn shipped_code(tree: &Tree, file: &str) -> String {
    let mut code = code_only(tree.text(file).unwrap_or_default());
    let is_inline =
        |at: usize| code[at..].find(['{', ';']).is_some_and(|end| code[at + end..].starts_with('{'));
    let tests = code.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(|at| is_inline(*at));
    code.truncate(tests.unwrap_or(code.len()));
    code
}

/// Paths through `crate::` and `super::` in the code of a module.
fn imports(code: &str, module: &[String]) -> Vec<Import> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = &code[..at];
            let is_segment = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            // Neither a visibility, `pub(in crate::a)`, nor the path of a macro, `$crate::A`, is an import.
            if is_segment || before.ends_with("pub(in ") || before.ends_with('$') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let paths = expand(&code[at..]).into_iter().map(|path| absolute(path, module));
            found.extend(paths.map(|path| Import { path, line }));
        }
    }
    found
}

/// Use trees after `use` with any visibility, up to the semicolon.
fn re_exports(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("use ").filter_map(|(at, word)| {
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub")
            || (before.ends_with(')') && before.rsplit('\n').next()?.contains("pub("));
        let tree = &code[at + word.len()..];
        is_public.then(|| &tree[..tree.find(';').unwrap_or(tree.len())])
    })
}

/// Resolves `crate`, `self` and leading `super` segments.
fn absolute(path: Vec<&str>, module: &[String]) -> Module {
    let up = path.iter().take_while(|part| **part == "super").count();
    let base = match path.first() {
        Some(&"crate") => &[],
        _ => &module[..module.len().saturating_sub(up)],
    };
    let rest = path.into_iter().filter(|part| !matches!(*part, "crate" | "super" | "self"));
    base.iter().cloned().chain(rest.map(str::to_owned)).collect()
}

/// Paths of the use tree at the start of `code`, or the one path there.
fn expand(code: &str) -> Vec<Vec<&str>> {
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
    fn code_after_inline_tests_is_omitted() {
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
