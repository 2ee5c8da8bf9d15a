//! Matching of declared names in calls.

/// Result of matching a declared name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared<'a> {
    /// The text starts with this name, followed by one of its ends.
    Found(&'a str),
    /// Undecided until more text arrives.
    Open,
    /// The text starts with none of the names.
    Absent,
}

/// Matches the longest of `names` at the start of `text` that is followed by one of `ends`.
///
/// A declared name may contain any character, including those of the syntax: only the declarations determine
/// its end.
pub(crate) fn declared<'n>(
    text: &str,
    names: impl IntoIterator<Item = &'n str>,
    ends: &[&str],
) -> Declared<'n> {
    let (mut found, mut open) = (None, None);
    for name in names {
        let Some(rest) = text.strip_prefix(name) else {
            open = open.max(name.starts_with(text).then_some(name.len()));
            continue;
        };
        let mut ends = ends.iter().filter(|end| !end.is_empty());
        if ends.clone().any(|end| rest.starts_with(end)) {
            found = found.filter(|known: &&str| known.len() > name.len()).or(Some(name));
        } else if ends.any(|end| end.starts_with(rest)) {
            open = open.max(Some(name.len()));
        }
    }
    match found {
        _ if open > found.map(str::len) => Declared::Open,
        Some(name) => Declared::Found(name),
        None => Declared::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::{Declared, declared};

    #[test]
    fn longest_name_is_reported_once_certain() {
        let names = ["a", "a>b", "", "x y"];
        let cases = [
            ("a>", Declared::Open),
            ("a>1", Declared::Found("a")),
            ("a>b>1", Declared::Found("a>b")),
            ("a>b", Declared::Open),
            (">", Declared::Found("")),
            ("x y>", Declared::Found("x y")),
            ("x ", Declared::Open),
            ("x>", Declared::Absent),
            ("b>", Declared::Absent),
            ("", Declared::Open),
        ];
        for (text, expected) in cases {
            assert_eq!(declared(text, names, &[">", ""]), expected, "{text}");
        }
    }

    #[test]
    fn prefix_name_keeps_both_candidates_open() {
        assert_eq!(declared("a>", ["a", "a>"], &[">"]), Declared::Open);
        assert_eq!(declared("a>1", ["a", "a>"], &[">"]), Declared::Found("a"));
        assert_eq!(declared("a>>", ["a", "a>"], &[">"]), Declared::Found("a>"));
    }
}
