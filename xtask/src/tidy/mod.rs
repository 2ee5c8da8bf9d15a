//! `cargo xtask tidy`: machine-checkable house rules. One file and one row per rule.

mod cited_tests;
mod code_paths;
mod crate_docs;
mod doc_openings;
mod import_circles;
mod layers;
mod lib_files;
mod line_width;
mod links;
mod machine_paths;
mod manifests;
mod merge_markers;
mod module_layers;
mod modules;
mod registries;
mod sizes;
mod unsafe_code;

use anyhow::{Result, bail};

use crate::tree::Tree;

const ALL: &[&Check] = &[
    &cited_tests::CHECK,
    &code_paths::CHECK,
    &crate_docs::CHECK,
    &doc_openings::CHECK,
    &import_circles::CHECK,
    &layers::CHECK,
    &lib_files::CHECK,
    &line_width::CHECK,
    &links::CHECK,
    &machine_paths::CHECK,
    &manifests::CHECK,
    &merge_markers::CHECK,
    &module_layers::CHECK,
    &modules::CHECK,
    &registries::CHECK,
    &sizes::CHECK,
    &unsafe_code::CHECK,
];

/// A rule over the whole checkout.
struct Check {
    name: &'static str,
    /// The rule in one line, printed with the first finding.
    rule: &'static str,
    run: fn(&Tree) -> Vec<Finding>,
}

/// A violation of a rule.
#[derive(Debug, PartialEq)]
struct Finding {
    /// File or folder from the root, with `:line` if it is about one line.
    place: String,
    text: String,
    level: Level,
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum Level {
    Warning,
    Error,
}

impl Finding {
    fn error(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into(), level: Level::Error }
    }

    fn warning(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into(), level: Level::Warning }
    }
}

#[derive(clap::Args)]
pub struct Args {
    /// Run only these checks [default: all]
    names: Vec<String>,
    /// Print the import graph of each crate that has a table of modules and the largest import circle of each
    /// crate, and check nothing
    #[arg(long)]
    print_modules: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(unknown) = args.names.iter().find(|name| !ALL.iter().any(|check| check.name == **name)) {
        let known: Vec<_> = ALL.iter().map(|check| check.name).collect();
        bail!("no check is named `{unknown}`; known: {}", known.join(", "));
    }
    let tree = Tree::read()?;
    if args.print_modules {
        module_layers::print(&tree);
        import_circles::print(&tree);
        return Ok(());
    }
    let mut errors = 0;
    for check in
        ALL.iter().filter(|check| args.names.is_empty() || args.names.iter().any(|n| n == check.name))
    {
        let findings = (check.run)(&tree);
        let failed = findings.iter().filter(|finding| finding.level == Level::Error).count();
        println!(
            "{:14} {}",
            check.name,
            if failed == 0 { "ok".to_owned() } else { format!("{failed} wrong: {}", check.rule) }
        );
        for Finding { place, text, level } in &findings {
            println!("  {}{place}: {text}", if *level == Level::Warning { "warning: " } else { "" });
        }
        errors += failed;
    }
    if errors > 0 {
        bail!("tidy found {errors} places that break a house rule");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_in_alphabetical_order_and_state_their_rule() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(ALL.iter().all(|check| !check.rule.is_empty()));
    }
}
