//! The `[dependencies]` of the READMEs name each crate that their examples use.

use std::path::{Path, PathBuf};

/// Crates of other projects in the examples.
const OTHERS: [&str; 5] = ["rig-agent", "schemars", "serde", "serde-json", "tokio"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Contents of the code blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begins = format!("```{language}\n");
    text.split(begins.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// Names of the crates whose paths occur in a program.
fn crates(program: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = program.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').collect();
    let roots = words.into_iter().filter_map(|word| Some(word.split_once("::")?.0.replace('_', "-")));
    roots
        .filter(|root| root.starts_with("lm-") || OTHERS.contains(&root.as_str()))
        .collect::<Vec<_>>()
        .into_iter()
}

/// `[dependencies]` of a README, and the crates that its programs use.
fn read(file: &Path) -> Option<(String, Vec<String>)> {
    let text = std::fs::read_to_string(file).expect("a file of the repository");
    let programs = ["rust", "rust,no_run"].into_iter().flat_map(|language| blocks(&text, language));
    let named: Vec<String> = programs.flat_map(crates).collect();
    let is_dependencies = |block: &&str| block.starts_with("[dependencies]");
    let dependencies = blocks(&text, "toml").into_iter().find(is_dependencies).unwrap_or_default();
    (!named.is_empty()).then(|| (dependencies.to_owned(), named))
}

#[test]
fn readme_dependencies_equal_those_of_examples() {
    let crates = std::fs::read_dir(root().join("crates")).expect("the folder of the crates");
    let files = crates.map(|entry| entry.expect("a crate").path().join("README.md"));
    let files = files.filter(|file| file.exists()).chain([root().join("README.md")]);
    let with_programs: Vec<_> =
        files.filter_map(|file| read(&file).map(|read| (file.display().to_string(), read))).collect();
    assert!(with_programs.len() > 12, "{with_programs:?}");
    for (file, (dependencies, named)) in with_programs {
        for name in named {
            let is_there = |line: &str| line.replace('_', "-").starts_with(&format!("{name} = "));
            assert!(dependencies.lines().any(is_there), "{file} uses {name}");
        }
    }
}

#[test]
fn readme_dependencies_suffice_for_custom_argument_types() {
    for file in ["README.md", "crates/lm-tools/README.md"] {
        let (dependencies, _) = read(&root().join(file)).expect("programs");
        for line in ["schemars = \"1\"", "serde = { version = \"1\", features = [\"derive\"] }"] {
            assert!(dependencies.contains(line), "{file}: {line}");
        }
        assert!(dependencies.contains("[profile.dev.package.\"*\"]"), "{file}");
    }
}
