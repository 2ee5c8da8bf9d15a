//! Resolution of a model argument: a path, or the name of a model on this machine.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lm_hub::{Error, ModelName, ModelStores, StoredModel};

/// Returns the path or name of a model on this machine. `None` is the embedded one, also by its own name,
/// unless a path has this name.
pub fn stored(model: Option<&Path>) -> Option<&Path> {
    model.filter(|path| *path != Path::new(lm_pocket::NAME) || path.exists())
}

/// A model found on this machine.
#[derive(Debug)]
pub struct Located {
    pub path: PathBuf,
    /// Name of the model; `None` if the argument was a path.
    pub name: Option<String>,
    /// Its `mmproj` file, where that is not beside the model.
    pub projector: Option<PathBuf>,
    /// Bytes of its files; `None` if the argument was a path.
    pub bytes: Option<u64>,
}

/// Error of an argument that is neither a path nor a name on this machine.
#[derive(Debug)]
pub struct ModelNotFound {
    pub asked: PathBuf,
    /// Its name on the hub, if it is a valid one.
    pub name: Option<ModelName>,
}

impl fmt::Display for ModelNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.asked.display();
        match self.name {
            Some(_) => write!(f, "there is no model `{asked}` on this machine, neither a path nor a name"),
            None => write!(f, "there is no model at `{asked}`"),
        }
    }
}

impl std::error::Error for ModelNotFound {}

/// Resolves a path or a name. The network is not used.
pub fn locate(asked: &Path) -> Result<Located> {
    if asked.exists() {
        return Ok(Located { path: asked.to_owned(), name: None, projector: None, bytes: None });
    }
    let not_found = |name| ModelNotFound { asked: asked.to_owned(), name };
    let Some(name) = asked.to_str().and_then(as_name) else { return Err(not_found(None).into()) };
    match ModelStores::from_env()?.find(&name) {
        Ok(StoredModel { path, name, projector, bytes, .. }) => {
            Ok(Located { path, name: Some(name), projector, bytes: Some(bytes) })
        }
        Err(Error::NotFound { .. }) => Err(not_found(Some(name)).into()),
        Err(other) => Err(other.into()),
    }
}

/// Parses a name, unless the text can only be a path.
fn as_name(text: &str) -> Option<ModelName> {
    let is_path = text.starts_with(['.', '/', '~']) || text.ends_with(['/', '\\']);
    if is_path { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_used_verbatim() {
        let folder = std::env::temp_dir();
        let located = locate(&folder).expect("is there");
        assert_eq!((located.path, located.name), (folder, None));
    }

    #[test]
    fn unambiguous_path_is_not_a_name() {
        for text in ["./a/b", "../a", "/a/b", "~/a", "a/", "a/b/c", "a\\b", ""] {
            assert_eq!(as_name(text), None, "{text}");
        }
        for text in ["a/b", "gpt2", "llama3.2:1b", "a/b:Q4_K_M@main", "hf.co/a/b"] {
            assert!(as_name(text).is_some(), "{text}");
        }
    }
}
