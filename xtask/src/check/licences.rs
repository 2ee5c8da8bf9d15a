//! Checks that every dependency's licence is allowed in `deny.toml`; needs only cargo.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use super::{Args, Outcome};
use crate::process::{self, cargo};

const CONFIG: &str = "deny.toml";

pub fn run(_: &Args) -> Result<Outcome> {
    let config = std::fs::read_to_string(process::root().join(CONFIG)).context("deny.toml cannot be read")?;
    let allowed = allowed_licences(&config)?;
    // Every feature and every target; dev-dependencies are not shipped.
    let tree =
        ["tree", "--workspace", "--all-features", "--target", "all", "--edges", "normal,build", "--locked"];
    let listing = process::output(cargo(&tree).args(["--prefix", "none", "--format", "{p}\t{l}"]))?;
    // Repeated packages are marked `(*)`.
    let lines = listing.lines().map(|line| line.trim_end_matches(" (*)"));
    let packages: BTreeSet<(&str, &str)> = lines.filter_map(|line| line.split_once('\t')).collect();
    let refused: Vec<_> = packages
        .iter()
        .filter(|(_, licence)| !is_allowed(licence, &allowed))
        .map(|(package, licence)| {
            format!("{package}: {}", if licence.is_empty() { "none stated" } else { licence })
        })
        .collect();
    if !refused.is_empty() {
        bail!("licences that {CONFIG} does not allow:\n  {}", refused.join("\n  "));
    }
    eprintln!("{} packages, all under licences that {CONFIG} allows", packages.len());
    Ok(Outcome::Passed)
}

fn allowed_licences(config: &str) -> Result<Vec<String>> {
    let config: toml::Table = config.parse().context("deny.toml is not TOML")?;
    let allow =
        config.get("licenses").and_then(|licenses| licenses.get("allow")).and_then(toml::Value::as_array);
    let allow = allow.context("deny.toml has no list `allow` under [licenses]")?;
    Ok(allow.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
}

/// Returns true if an SPDX expression is satisfied by the allowed licences; the old `A/B` means `A OR B`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Expression { tokens: &tokens, at: 0, allowed };
    parser.alternatives() && parser.at == tokens.len()
}

struct Expression<'a> {
    tokens: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
}

impl Expression<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn alternatives(&mut self) -> bool {
        let mut met = self.conjunction();
        while self.take("OR") {
            met |= self.conjunction();
        }
        met
    }

    fn conjunction(&mut self) -> bool {
        let mut met = self.licence();
        while self.take("AND") {
            met &= self.licence();
        }
        met
    }

    fn licence(&mut self) -> bool {
        if self.take("(") {
            return self.alternatives() & self.take(")");
        }
        let Some(name) = self.tokens.get(self.at) else { return false };
        self.at += 1;
        let mut name = (*name).to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.tokens.get(self.at).unwrap_or(&""));
            self.at += 1;
        }
        self.allowed.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_follow_precedence() {
        let allowed =
            ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("GPL-3.0 OR MIT AND GPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("MIT WITH some-exception", false),
            ("(MIT", false),
            ("none stated", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
