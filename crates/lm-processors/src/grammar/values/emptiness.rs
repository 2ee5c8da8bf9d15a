//! Constraints on a string that no string meets.

use std::collections::HashMap;

use derivre::{RegexAst, RegexBuilder};

/// Work after which one search for a string is given up, in the library's units.
const FUEL: u64 = 200_000;
/// Maximum number of different searches for a schema.
const MAX_SEARCHES: usize = 50;
/// Maximum length of the expressions together.
const MAX_BYTES: usize = 4_096;
/// Maximum number of branches of their conjunction for one byte, estimated by the signs that make branches.
const MAX_BRANCHES: u64 = 1 << 16;

/// Searches for strings that meet several constraints: what was found, by the terms of the constraints.
#[derive(Debug, Default)]
pub(super) struct Emptiness {
    known: HashMap<String, bool>,
}

impl Emptiness {
    /// Returns true if no text matches all of these terminal expressions, each of the form `/…/` or `~/…/`.
    /// False also if that takes too long to find out.
    pub(super) fn is_empty<'a>(&mut self, terms: impl Iterator<Item = &'a str> + Clone) -> bool {
        let bytes: usize = terms.clone().map(str::len).sum();
        let branches = terms.clone().fold(1_u64, |product, term| product.saturating_mul(branches_of(term)));
        if bytes > MAX_BYTES || branches > MAX_BRANCHES {
            return false;
        }
        let all = terms.clone().collect::<Vec<_>>().join(" & ");
        if let Some(known) = self.known.get(&all) {
            return *known;
        }
        if self.known.len() == MAX_SEARCHES {
            return false;
        }
        let found = is_empty(terms);
        self.known.insert(all, found);
        found
    }
}

fn is_empty<'a>(terms: impl Iterator<Item = &'a str>) -> bool {
    let mut builder = RegexBuilder::new();
    let all = RegexAst::And(terms.map(ast).collect());
    let regex = builder.mk(&all).and_then(|all| builder.into_regex_limited(all, FUEL));
    regex.is_ok_and(|mut regex| regex.always_empty())
}

fn ast(term: &str) -> RegexAst {
    let regex = |term: &str| RegexAst::Regex(term[1..term.len() - 1].to_owned());
    match term.strip_prefix('~') {
        Some(term) => RegexAst::Not(Box::new(regex(term))),
        None => regex(term),
    }
}

fn branches_of(term: &str) -> u64 {
    1 + term.bytes().filter(|byte| b"|*+?{".contains(byte)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_found() {
        for empty in [
            &["/a/", "/(?s:.){2,}/"][..],
            &["/[0-9a-f]{8}-[0-9a-f]{4}/", "/(?s:.){0,12}/"],
            &["/x(?s:.*)/", r"/[0-9]{4}-[0-9]{2}/"],
            &["/(?s:.*)a(?s:.*)/", "~/(?s:.*)a(?s:.*)/"],
            &[r"/(\x22|abcdef)/", r"/[^\x22\\\x00-\x1f]*/", "/(?s:.){0,3}/"],
        ] {
            assert!(Emptiness::default().is_empty(empty.iter().copied()), "{empty:?}");
        }
        for possible in [&["/a/"][..], &["/(?s:.*)a/", "/b(?s:.*)/", "/(?s:.){2}/"], &["/a*/", "~/a{1,}/"]] {
            assert!(!Emptiness::default().is_empty(possible.iter().copied()), "{possible:?}");
        }
        // Not searched.
        let mut searched = Emptiness::default();
        let contradiction = |at: usize| [format!("/a{at}/"), "/b(?s:.*)/".to_owned()];
        let found = |at: usize, searched: &mut Emptiness| {
            searched.is_empty(contradiction(at).iter().map(String::as_str))
        };
        assert!((0..MAX_SEARCHES).all(|at| found(at, &mut searched)));
        assert!(!found(MAX_SEARCHES, &mut searched) && found(0, &mut searched));
        assert!(
            !Emptiness::default()
                .is_empty(["/(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p)x/"; 5].into_iter().chain(["/y/"]))
        );
    }
}
