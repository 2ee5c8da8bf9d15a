//! Paths at the end of a line, spelled as in a shell.

use std::path::{PathBuf, is_separator};

use rustyline::completion::{FilenameCompleter, Pair, Quote, escape, unescape};

/// Escape character; on Windows `\` separates folders.
const ESCAPE: Option<char> = if cfg!(windows) { None } else { Some('\\') };
const QUOTES: [char; 2] = ['"', '\''];

/// Parses the rest of a line as one path: `\` escapes the next character, quotes around the path are removed,
/// and `~` at its start is the home folder. Blanks in the path need neither.
pub fn parse(text: &str) -> PathBuf {
    let text = text.trim();
    let quote = text.chars().next().filter(|first| QUOTES.contains(first));
    let inner = quote.map_or(text, |quote| text[1..].strip_suffix(quote).unwrap_or(&text[1..]));
    let path = unescape(inner, ESCAPE.filter(|_| quote != Some('\'')));
    let below_home = inner.strip_prefix('~').and_then(|_| path.strip_prefix('~'));
    match below_home.filter(|rest| rest.is_empty() || rest.starts_with(is_separator)) {
        Some(rest) => std::env::home_dir()
            .map_or_else(|| PathBuf::from(&*path), |home| home.join(rest.trim_start_matches(is_separator))),
        None => PathBuf::from(&*path),
    }
}

/// Completes a path that is typed in part; returns the start of the replaced text, and the replacements as
/// [`parse`] reads them.
///
/// # Errors
/// As [`FilenameCompleter::complete_path`].
pub fn complete(files: &FilenameCompleter, typed: &str) -> rustyline::Result<(usize, Vec<Pair>)> {
    if typed.starts_with(QUOTES) {
        return files.complete_path(typed, typed.len());
    }
    let word = escape(unescape(typed, ESCAPE).into_owned(), ESCAPE, ends_word, Quote::None);
    Ok((0, files.complete_path(&word, word.len())?.1))
}

/// Returns true for a character at which the completer ends a word, unless it is escaped.
fn ends_word(c: char) -> bool {
    " \t\n\"\\'`@$><=;|&{(\0".contains(c)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn path_is_unquoted_as_in_a_shell() {
        for (text, expected) in [
            ("chat.json", "chat.json"),
            ("my chat.json ", "my chat.json"),
            (r"my\ chat.json", "my chat.json"),
            ("\"my chat.json\"", "my chat.json"),
            ("'my \\chat.json'", "my \\chat.json"),
            ("\"my chat", "my chat"),
            (r"it\'s", "it's"),
            ("it's", "it's"),
            (r"a\\b", r"a\b"),
            ("~user/a", "~user/a"),
            (r"\~/a", "~/a"),
            ("a/~", "a/~"),
        ] {
            assert_eq!(parse(text), PathBuf::from(expected), "{text}");
        }
        let home = std::env::home_dir().expect("HOME is set where tests run");
        assert_eq!(parse("~"), home);
        assert_eq!(parse("~/my chat.json"), home.join("my chat.json"));
        assert_eq!(parse("\"~/a b\""), home.join("a b"));
    }

    #[test]
    fn completed_path_reads_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("it's my (first) $chat & \"more\".json");
        std::fs::write(&path, "").expect("can be written");
        let files = FilenameCompleter::new();
        let folder = folder.path().to_str().expect("a temporary path is text");
        for typed in ["it's my", "it", r"it\'s\ my\ \(f", "", "it's my (first) $chat & \"mo"] {
            let typed = format!("{folder}/{typed}");
            let (start, pairs) = complete(&files, &typed).expect("completes");
            let completed: Vec<_> = pairs.iter().map(|pair| parse(&pair.replacement)).collect();
            assert_eq!((start, &completed[..]), (0, std::slice::from_ref(&path)), "{typed}");
        }
        let typed = format!("\"{folder}/it's my");
        let (start, pairs) = complete(&files, &typed).expect("completes");
        assert_eq!(parse(&format!("{}{}\"", &typed[..start], pairs[0].replacement)), path);
    }
}
