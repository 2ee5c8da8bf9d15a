//! Files that a message names as `@path`.

use std::path::PathBuf;

use super::paths;

/// Punctuation that ends a sentence, and not a path.
const ENDS: [char; 8] = ['.', ',', ';', ':', '?', '!', ')', '"'];

/// Files of the words that begin with `@`: `@notes.md`, `@~/log.txt`. Words that name no file are text.
pub fn files(message: &str) -> Vec<PathBuf> {
    let words = message.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let named = words.filter_map(|word| {
        let path = |word: &str| Some(paths::parse(word)).filter(|path| path.is_file());
        path(word).or_else(|| path(word.trim_end_matches(ENDS)))
    });
    named.collect()
}

/// Start of the path in the last word, if that begins with `@`.
pub fn start_of_last(typed: &str) -> Option<usize> {
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    typed[start..].starts_with('@').then_some(start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_files_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().to_str().expect("UTF-8");
        for name in ["a.md", "b.c."] {
            std::fs::write(format!("{folder}/{name}"), "").expect("is written");
        }
        let found = |text: &str| files(&text.replace("DIR", folder));
        let path = |name: &str| PathBuf::from(format!("{folder}/{name}"));
        assert_eq!(found("Compare @DIR/a.md and (@DIR/a.md"), [path("a.md")]);
        assert_eq!(found("@DIR/b.c. @DIR/a.md?"), [path("b.c."), path("a.md")], "a name with a full stop");
        for none in ["me@DIR/a.md", "@DIR", "@DIR/c.md", "@", "@param x", ""] {
            assert_eq!(found(none), Vec::<PathBuf>::new(), "{none}");
        }
        assert_eq!(start_of_last("see @a/b"), Some(5));
        assert_eq!(start_of_last("@"), Some(1));
        for none in ["a@b", "@a b", "", " "] {
            assert_eq!(start_of_last(none), None, "{none}");
        }
    }
}
