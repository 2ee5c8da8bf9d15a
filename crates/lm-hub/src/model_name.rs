//! Model names: `OWNER/NAME[:FILE][@REVISION]`, or Ollama's `NAME[:TAG]`.

use std::fmt;
use std::str::FromStr;

use crate::{Error, RepoPath};

/// Maximum length of owner and name, as on the hub.
const MAX_REPO: usize = 96;
const MAX_REVISION: usize = 200;
/// Prefixes that users copy from the address bar, or from Ollama.
const PREFIXES: [&str; 4] = ["https://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/"];

/// A repository id: `OWNER/NAME`, or a `NAME` alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoId {
    owner: Option<String>,
    name: String,
}

/// A model name.
///
/// ```
/// use lm_hub::ModelName;
///
/// let name: ModelName = "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M@main".parse()?;
/// assert_eq!(name.repo.to_string(), "bartowski/Llama-3.2-1B-Instruct-GGUF");
/// assert_eq!((name.file.as_deref(), name.revision.as_deref()), (Some("Q4_K_M"), Some("main")));
/// assert!("../secrets".parse::<ModelName>().is_err());
/// # Ok::<(), lm_hub::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The repository.
    pub repo: RepoId,
    /// A file of it, or the part of its name that identifies a GGUF file (`Q4_K_M`). For Ollama's models: the
    /// tag.
    pub file: Option<String>,
    /// A branch, tag or commit; `main` without it.
    pub revision: Option<String>,
}

impl RepoId {
    /// The owner, if any.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The name without the owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_REPO {
            return Err("it is longer than 96 characters");
        }
        let (owner, name) = match text.split_once('/') {
            Some((owner, name)) => (Some(owner), name),
            None => (None, text),
        };
        for part in owner.into_iter().chain([name]) {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return Err(
                    "owner and name are letters, digits, `-`, `_` and `.`, with one `/` between them",
                );
            }
            if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
                return Err("owner and name neither begin nor end with `-` or `.`");
            }
        }
        if text.contains("--") || text.contains("..") || text.ends_with(".git") {
            return Err("the hub rejects names with `--` or `..`, and names that end with `.git`");
        }
        Ok(Self { owner: owner.map(str::to_owned), name: name.to_owned() })
    }
}

impl FromStr for RepoId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(|reason| Error::InvalidName { text: text.to_owned(), reason })
    }
}

impl FromStr for ModelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |reason| Error::InvalidName { text: text.to_owned(), reason };
        let name = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        let (name, revision) = match name.split_once('@') {
            Some((name, revision)) => (name, Some(checked_revision(revision).map_err(invalid)?)),
            None => (name, None),
        };
        let (repo, file) = match name.split_once(':') {
            Some((repo, file)) => (repo, Some(checked_file(file).map_err(invalid)?)),
            None => (name, None),
        };
        Ok(Self { repo: RepoId::parse(repo).map_err(invalid)?, file, revision })
    }
}

impl ModelName {
    /// Replaces the file, or part of a file's name.
    ///
    /// # Errors
    /// [`Error::InvalidName`] when it is not a path inside a repository.
    pub fn with_file(self, file: &str) -> Result<Self, Error> {
        let file =
            checked_file(file).map_err(|reason| Error::InvalidName { text: file.to_owned(), reason })?;
        Ok(Self { file: Some(file), ..self })
    }
}

fn checked_file(file: &str) -> Result<String, &'static str> {
    match RepoPath::parse(file) {
        Ok(path) => Ok(path.as_str().to_owned()),
        Err(_) => Err("expected a file of the repository after `:`, or a part of its name such as Q4_K_M"),
    }
}

/// Validates a revision. A branch or tag may have slashes; its name becomes a path in the cache.
fn checked_revision(revision: &str) -> Result<String, &'static str> {
    let usual = revision.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./+".contains(&b));
    if revision.len() > MAX_REVISION || !usual || RepoPath::parse(revision).is_err() {
        return Err("expected a branch, a tag or a commit after `@`");
    }
    Ok(revision.to_owned())
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "{owner}/")?;
        }
        f.write_str(&self.name)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repo)?;
        if let Some(file) = &self.file {
            write!(f, ":{file}")?;
        }
        if let Some(revision) = &self.revision {
            write!(f, "@{revision}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, owner, name, file, revision) in [
            ("Qwen/Qwen3-0.6B", Some("Qwen"), "Qwen3-0.6B", None, None),
            ("gpt2", None, "gpt2", None, None),
            ("llama3.2:1b", None, "llama3.2", Some("1b"), None),
            ("a/b:sub/x.gguf@refs/pr/1", Some("a"), "b", Some("sub/x.gguf"), Some("refs/pr/1")),
            ("a/b@v1.0", Some("a"), "b", None, Some("v1.0")),
        ] {
            let parsed: ModelName = text.parse().expect(text);
            assert_eq!((parsed.repo.owner(), parsed.repo.name()), (owner, name), "{text}");
            assert_eq!((parsed.file.as_deref(), parsed.revision.as_deref()), (file, revision), "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        for prefix in PREFIXES {
            let parsed: ModelName = format!("{prefix}a/b").parse().expect(prefix);
            assert_eq!(parsed.to_string(), "a/b");
        }
    }

    #[test]
    fn path_traversal_and_invalid_characters_are_rejected() {
        for text in [
            "",
            "a/b/c",
            "../b",
            "a/..",
            "a/b--c",
            "a--b/c",
            ".a/b",
            "a/b.",
            "a/b.git",
            "/a/b",
            "a b/c",
            "a/b@",
            "a/b@../x",
            "a/b@/x",
            "a/b@x y",
            "a/b:../x",
            "a/b:",
            "a\\b",
            "ä/b",
            "C:\\models\\x",
            "https://example.com/a/b",
        ] {
            let error = text.parse::<ModelName>().expect_err(text);
            assert!(matches!(error, Error::InvalidName { .. }), "{text}");
        }
        assert!(format!("a/{}", "x".repeat(95)).parse::<ModelName>().is_err());
    }
}
