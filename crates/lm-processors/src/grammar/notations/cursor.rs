//! Reading of a text from its beginning: `rest` is the part that is not read yet.

/// Takes `text`; returns false if the rest does not begin with it.
pub(super) fn take(rest: &mut &str, text: &str) -> bool {
    let after = rest.strip_prefix(text);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

/// Takes the characters up to the first that is not of a kind.
pub(super) fn take_while<'t>(rest: &mut &'t str, is_kind: impl Fn(char) -> bool) -> &'t str {
    let end = rest.find(|c| !is_kind(c)).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken
}

/// Skips blanks, line breaks if `lines`, and comments, which begin with one of `comments`.
pub(super) fn skip_blanks(rest: &mut &str, lines: bool, comments: &[&str]) {
    loop {
        take_while(rest, |c| matches!(c, ' ' | '\t') || lines && matches!(c, '\r' | '\n'));
        if !comments.iter().any(|comment| rest.starts_with(comment)) {
            return;
        }
        take_while(rest, |c| !matches!(c, '\r' | '\n'));
    }
}
