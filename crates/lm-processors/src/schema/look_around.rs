//! Look-around at the edges of an anchored pattern: conditions on the whole text.

/// Most conditions of one pattern: together with the rest of it, each multiplies the states of a lexer.
const MAX_LOOKS: usize = 4;
/// Most bytes of the conditions of one pattern.
const MAX_LOOK_BYTES: usize = 64;

/// A condition on the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// True for a negative look-around.
    pub(super) negative: bool,
    /// The pattern to be found in the text.
    pub(super) found: String,
}

/// The conditions in `pattern`, look-ahead at its start and look-behind at its end, and the pattern without
/// them; none when they are too many or the pattern has alternatives.
pub(super) fn split_looks(pattern: &str) -> Option<(Vec<Look>, String)> {
    if !["(?=", "(?!", "(?<=", "(?<!"].iter().any(|open| pattern.contains(open)) {
        return Some((Vec::new(), pattern.to_owned()));
    }
    let groups = groups(pattern)?;
    let mut looks = Vec::new();
    let mut start = pattern.len() - pattern.trim_start_matches('^').len();
    while start > 0
        && let Some(&(_, end)) = groups.iter().find(|(open, _)| *open == start)
        && let Some((negative, body)) = look(&pattern[start..end], ["(?=", "(?!"])
    {
        looks.push(Look { negative, found: format!("^(?:{body})") });
        start = end;
    }
    let anchored = pattern.ends_with('$') && !ends_escaped(&pattern[..pattern.len() - 1]);
    let mut end = pattern.len() - usize::from(anchored);
    while anchored
        && let Some(&(open, _)) = groups.iter().find(|(open, close)| *close == end && *open >= start)
        && let Some((negative, body)) = look(&pattern[open..end], ["(?<=", "(?<!"])
    {
        looks.push(Look { negative, found: format!("(?:{body})$") });
        end = open;
    }
    let rest = pattern.get(start..end)?;
    let bytes: usize = looks.iter().map(|look| look.found.len()).sum();
    if looks.len() > MAX_LOOKS || bytes > MAX_LOOK_BYTES || rest.starts_with(['*', '+', '?', '{']) {
        return None;
    }
    Some((looks, format!("{}{rest}{}", if start > 0 { "^" } else { "" }, if anchored { "$" } else { "" })))
}

/// Content of the look-around `group`, and true if it opens with the second of `opens`.
fn look<'p>(group: &'p str, opens: [&str; 2]) -> Option<(bool, &'p str)> {
    let body = |open: &str| group.strip_prefix(open)?.strip_suffix(')');
    body(opens[0]).map(|body| (false, body)).or_else(|| body(opens[1]).map(|body| (true, body)))
}

/// Ranges of the outermost groups of `pattern`; none if it has alternatives outside of them or is not a
/// pattern.
fn groups(pattern: &str) -> Option<Vec<(usize, usize)>> {
    let (mut found, mut open, mut in_class) = (Vec::new(), Vec::new(), false);
    let mut chars = pattern.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => open.push(at),
            ')' => {
                let start = open.pop()?;
                if open.is_empty() {
                    found.push((start, at + 1));
                }
            }
            '|' if open.is_empty() => return None,
            _ => {}
        }
    }
    open.is_empty().then_some(found)
}

/// Returns true if `text` ends with an unpaired backslash, which escapes the next character.
fn ends_escaped(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_arounds_are_split_off_at_both_edges() {
        let look = |negative, found: &str| Look { negative, found: found.to_owned() };
        assert_eq!(
            split_looks(r"^(?=.*[(])(?!--)[a-z]{2,6}(?<!-)$"),
            Some((
                vec![look(false, "^(?:.*[(])"), look(true, "^(?:--)"), look(true, "(?:-)$")],
                "^[a-z]{2,6}$".to_owned()
            ))
        );
        assert_eq!(split_looks("a|b"), Some((vec![], "a|b".to_owned())));
        for unsupported in
            ["^(?=a)b|c", "^(?=a)*b$", "^(?=a){2}b$", &"(?=a)".repeat(5).replacen('(', "^(", 1)]
        {
            assert_eq!(split_looks(unsupported), None, "{unsupported}");
        }
        // What is not at an edge stays, and has no grammar.
        for inner in ["(?=a)b", "^a(?!b)c$", r"^a(?<!b)\$", "^a(?=b)$"] {
            assert_eq!(split_looks(inner).map(|(looks, _)| looks.len()), Some(0), "{inner}");
        }
    }
}
