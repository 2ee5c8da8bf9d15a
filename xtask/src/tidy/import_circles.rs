//! Files of a crate that import each other in a circle are few: a circle is read and changed as one piece.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Finding};
use crate::imports::{CrateSource, Module, ReExports};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "import-circles",
    rule: "at most 5 files of a crate import each other in a circle; `cargo xtask tidy --print-modules` prints them",
    run,
};

/// Maximum number of files in a circle.
const MAX_CIRCLE: usize = 5;

/// Modules and their imports.
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

/// Imports between the files of a crate; re-exports do not count.
fn graph(tree: &Tree, krate: &str) -> Graph {
    let source = CrateSource::read(tree, krate);
    let edges = |module: &Module| {
        let targets =
            source.imports(module, ReExports::Ignored).filter_map(|import| source.owner(&import.path));
        targets.filter(|target| target != module).collect()
    };
    source.files.keys().map(|module| (module.clone(), edges(module))).collect()
}

/// The largest set of modules that all reach each other; empty if no two do.
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
    fn mutual_imports_are_a_circle() {
        assert_eq!(circle(&[("b.rs", "use crate::c::C;"), ("c.rs", "use super::b::B;")]), "b, c");
        assert_eq!(circle(&[("b.rs", "use crate::c::C;"), ("c.rs", "")]), "");
    }

    #[test]
    fn re_exported_name_resolves_to_its_file() {
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
    fn tests_are_ignored() {
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
