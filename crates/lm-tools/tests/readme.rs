//! The `[dependencies]` of the READMEs name each crate that their examples use.

use std::path::Path;

/// Contents of the code blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begins = format!("```{language}\n");
    text.split(begins.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// Names of the crates whose paths occur in a program.
fn crates(program: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = program.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').collect();
    let roots = words.into_iter().filter_map(|word| Some(word.split_once("::")?.0.replace('_', "-")));
    let known = ["lm-tools", "lm-pocket", "lm-conversation", "schemars", "serde", "serde-json", "tokio"];
    roots.filter(move |root| known.contains(&root.as_str())).collect::<Vec<_>>().into_iter()
}

#[test]
fn the_dependencies_of_a_readme_are_those_of_its_examples() {
    for file in ["README.md", "crates/lm-tools/README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = std::fs::read_to_string(path).expect("a file of the repository");
        let dependencies =
            blocks(&text, "toml").into_iter().find(|block| block.starts_with("[dependencies]"));
        let dependencies = dependencies.unwrap_or_else(|| panic!("{file} has no dependencies"));
        let named: Vec<String> = blocks(&text, "rust").into_iter().flat_map(crates).collect();
        assert!(named.iter().any(|name| name == "serde-json"), "{file}: {named:?}");
        for name in named {
            let is_there = |line: &str| line.replace('_', "-").starts_with(&format!("{name} = "));
            assert!(dependencies.lines().any(is_there), "{file} uses {name}");
        }
        for line in ["schemars = \"1\"", "serde = { version = \"1\", features = [\"derive\"] }"] {
            assert!(dependencies.contains(line), "{file}: {line}");
        }
        assert!(dependencies.contains("[profile.dev.package.\"*\"]"), "{file}");
    }
}
