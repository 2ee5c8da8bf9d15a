//! Validated paths of files inside a repository, from untrusted input.

use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum length of a path, and of one component, in bytes: the limits of file systems.
const MAX_PATH: usize = 1024;
const MAX_PART: usize = 255;

/// A relative path of a file inside a repository, with `/` as separator, that cannot lead out of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(String);

/// Reason why a text is not a [`RepoPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// It leaves the repository: absolute, or with `..`.
    Outside,
    /// Its characters or its length are not supported by every file system.
    Unusual,
}

impl RepoPath {
    /// Validates a path from a server or a file.
    pub(crate) fn parse(text: &str) -> Result<Self, PathFault> {
        let drive = matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
        let parts = || text.split(['/', '\\']);
        if text.starts_with(['/', '\\']) || drive || parts().any(|part| part == "..") {
            return Err(PathFault::Outside);
        }
        let usual = |part: &str| {
            !part.is_empty()
                && part != "."
                && part.len() <= MAX_PART
                && !part.ends_with(['.', ' '])
                && !part.chars().any(|c| c.is_control() || "<>:\"|?*".contains(c))
        };
        if text.len() > MAX_PATH || text.contains('\\') || !parts().all(usual) {
            return Err(PathFault::Unusual);
        }
        Ok(Self(text.to_owned()))
    }

    /// The path, with `/` as separator.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The parent folder; empty at the top.
    pub fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns true for the name of a GGUF file with a vision tower and projector (`mmproj`).
    pub fn is_projector(&self) -> bool {
        let name = self.file_name().to_ascii_lowercase();
        name.ends_with(".gguf") && name.contains("mmproj")
    }

    /// The file's location when the repository is at `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        self.0.split('/').fold(root.to_owned(), |path, part| path.join(part))
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_the_root_are_accepted() {
        for good in ["config.json", "a/b.gguf", "a b/ü.json", "..a/b..c"] {
            assert_eq!(RepoPath::parse(good).map(|path| path.0), Ok(good.to_owned()));
        }
        for outside in ["../x", "a/../../x", "/etc/passwd", "\\x", "..\\x", "C:\\x", "c:x", ".."] {
            assert_eq!(RepoPath::parse(outside), Err(PathFault::Outside), "{outside}");
        }
        for unusual in ["", "a//b", "./a", "a/", "a\nb", "ab:y", "a\\b", "nul\0", "a.", &"x".repeat(300)] {
            assert_eq!(RepoPath::parse(unusual), Err(PathFault::Unusual), "{unusual:?}");
        }
    }

    #[test]
    fn path_parts_are_checked() {
        let path = RepoPath::parse("BF16/x-00001-of-00002.gguf").expect("is one");
        assert_eq!((path.folder(), path.file_name()), ("BF16", "x-00001-of-00002.gguf"));
        assert_eq!(path.under(Path::new("r")), Path::new("r").join("BF16").join("x-00001-of-00002.gguf"));
        assert_eq!(RepoPath::parse("x").expect("is one").folder(), "");
    }

    proptest::proptest! {
        #[test]
        fn accepted_path_stays_inside_its_root(text in "[./\\\\a:~ -]{0,12}") {
            if let Ok(path) = RepoPath::parse(&text) {
                let path = path.under(Path::new("root"));
                let mut parts = path.components();
                proptest::prop_assert_eq!(parts.next(), Some(std::path::Component::Normal("root".as_ref())));
                proptest::prop_assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }
}
