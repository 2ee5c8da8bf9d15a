//! Files of a crate that import each other in a circle are few: a circle is read and changed as one piece.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Finding};
use crate::imports::{Module, absolute, expand, files, imports, shipped_code};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "import-circles",
    rule: "at most 5 files of a crate import each other in a circle; `cargo xtask tidy --print-modules` prints them",
    run,
};

/// Maximum number of files in a circle.
const MAX_CIRCLE: usize = 5;

/// Modules and those that each imports.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

fn run(tree: &Tree) -> Vec<Finding> {
    let large = crates(tree).into_iter().filter_map(|krate| {
        let circle = largest_circle(&graph(tree, &krate));
        (circle.len() > MAX_CIRCLE).then(|| {
            let text = format!("{} files import each other in a circle: {}", circle.len(), names(&circle));
            Finding::error(format!("crates/{krate}"), text)
        })
    });
    large.collect()
}

/// Prints the largest circle of each crate.
pub(super) fn print(tree: &Tree) {
    for krate in crates(tree) {
        let graph = graph(tree, &krate);
        let circle = largest_circle(&graph);
        println!(
            "{krate}: {} of {} files in the largest circle: {}",
            circle.len(),
            graph.len(),
            names(&circle)
        );
    }
}

fn names(circle: &BTreeSet<Module>) -> String {
    circle.iter().map(|module| module.join("/")).collect::<Vec<_>>().join(", ")
}

fn crates(tree: &Tree) -> BTreeSet<String> {
    tree.below("crates").filter_map(|file| file.split_once('/')).map(|(krate, _)| krate.to_owned()).collect()
}

/// Imports between the files of a crate. A name that a module re-exports leads to the file that defines it; re-exports and
/// `mod` lines themselves do not count.
fn graph(tree: &Tree, krate: &str) -> Graph {
    let files = files(tree, krate);
    let code: BTreeMap<&Module, String> =
        files.iter().map(|(module, file)| (module, shipped_code(tree, file))).collect();
    let exports = exports(tree, krate, &files, &code);
    let edges = |module: &Module, code: &str| {
        let code = re_exports(code).fold(code.to_owned(), |code, export| code.replace(export, ""));
        let named = imports(&code, module).into_iter();
        let targets = named.filter_map(|import| owner(&import.path, &files, &exports));
        targets.filter(|target| target != module).collect()
    };
    code.iter().map(|(module, code)| ((*module).clone(), edges(module, code))).collect()
}

/// Modules that define what a module re-exports, by name; the crate root has the empty path.
type Exports = BTreeMap<Module, BTreeMap<String, Module>>;

fn exports(
    tree: &Tree,
    krate: &str,
    files: &BTreeMap<Module, String>,
    code: &BTreeMap<&Module, String>,
) -> Exports {
    let root = (Module::new(), shipped_code(tree, &format!("crates/{krate}/src/lib.rs")));
    let mut exports = Exports::new();
    // The second pass follows re-exports of re-exports.
    for _ in 0..2 {
        for (module, code) in code.iter().map(|(module, code)| (*module, code)).chain([(&root.0, &root.1)]) {
            for path in re_exports(code).flat_map(expand) {
                let Some(name) = path.last().map(|name| (*name).to_owned()) else { continue };
                let target = owner(&absolute(path, module), files, &exports);
                exports.entry(module.clone()).or_default().extend(target.map(|target| (name, target)));
            }
        }
    }
    exports
}

/// Use trees after `pub use`, `pub(crate) use` and the like, up to the semicolon.
fn re_exports(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("use ").filter_map(|(at, word)| {
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub")
            || (before.ends_with(')') && before.rsplit('\n').next()?.contains("pub("));
        let tree = &code[at + word.len()..];
        is_public.then(|| &tree[..tree.find(';').unwrap_or(tree.len())])
    })
}

/// Module whose file defines what a path names; none for paths that lead out of the crate.
fn owner(path: &[String], files: &BTreeMap<Module, String>, exports: &Exports) -> Option<Module> {
    let module = (1..=path.len()).rev().map(|length| &path[..length]).find(|path| files.contains_key(*path));
    let exported = path.get(module.map_or(0, <[String]>::len));
    let exported = exported.and_then(|name| exports.get(module.unwrap_or_default())?.get(name));
    exported.cloned().or_else(|| module.map(<[String]>::to_vec))
}

/// The largest set of modules of which each reaches each; empty if no two do.
fn largest_circle(graph: &Graph) -> BTreeSet<Module> {
    let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reached_from(graph, module))).collect();
    let circles = graph.keys().map(|module| -> BTreeSet<Module> {
        let others = reachable[module].iter().filter(|other| reachable[**other].contains(module));
        others.map(|other| (*other).clone()).collect()
    });
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
}

/// Modules that are reached by one or more imports.
fn reached_from<'a>(graph: &'a Graph, start: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = graph[start].iter().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(&graph[module]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: &[(&str, &str)]) -> String {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        names(&largest_circle(&graph(&Tree::of(&files), "a")))
    }

    #[test]
    fn imports_there_and_back_are_a_circle() {
        assert_eq!(circle(&[("b.rs", "use crate::c::C;"), ("c.rs", "use super::b::B;")]), "b, c");
        assert_eq!(circle(&[("b.rs", "use crate::c::C;"), ("c.rs", "")]), "");
    }

    #[test]
    fn a_re_exported_name_leads_to_its_file() {
        let folder = [("b/mod.rs", "mod c;\npub(crate) use c::C;"), ("b/c.rs", "use crate::d::D;")];
        let through = [&folder[..], &[("d.rs", "use crate::b::C;")]].concat();
        assert_eq!(circle(&through), "b/c, d");
        let root = [
            ("lib.rs", "mod b;\nmod e;\npub use b::B;"),
            ("b.rs", "use crate::e::E;"),
            ("e.rs", "use crate::B;"),
        ];
        assert_eq!(circle(&root), "b, e");
        let beside = [&folder[..], &[("d.rs", "use crate::b::E;")]].concat();
        assert_eq!(circle(&beside), "");
    }

    #[test]
    fn tests_do_not_count() {
        let low = "use crate::c::C;";
        assert_eq!(circle(&[("b.rs", low), ("c.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }")]), "");
        assert_eq!(circle(&[("b.rs", low), ("c/tests.rs", "use crate::b::B;"), ("c/mod.rs", "")]), "");
    }

    #[test]
    fn six_files_are_too_many() {
        let names = ["b", "c", "d", "e", "f", "g"];
        let file = |at: usize| {
            (format!("crates/a/src/{}.rs", names[at]), format!("use crate::{}::X;", names[(at + 1) % 6]))
        };
        let files: Vec<_> = (0..6).map(file).collect();
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(run(&Tree::of(&files)).len(), 1);
        assert_eq!(run(&Tree::of(&files[..5])).len(), 0);
    }
}
