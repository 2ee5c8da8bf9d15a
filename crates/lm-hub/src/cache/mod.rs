//! Cache of downloaded models, in the layout of `huggingface_hub`:
//!
//! ```text
//! models--OWNER--NAME/blobs/ETAG                        the bytes
//! models--OWNER--NAME/refs/main                         the commit of a branch or tag
//! models--OWNER--NAME/snapshots/COMMIT/config.json      a link to a blob
//! ```

mod listing;
mod removal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use listing::{CachedFile, CachedModel, CachedSnapshot};
pub(crate) use listing::{INCOMPLETE, snapshot_files, walk};
pub use removal::Removal;

use crate::settings::read_short;
use crate::{Error, RepoId, RepoPath, Result};

const MODELS: &str = "models--";
const DEFAULT_REVISION: &str = "main";
/// A commit has 40 characters.
const MAX_REF_BYTES: u64 = 128;

/// A folder in the layout of the Hugging Face cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Creates a handle to the cache at `root`; nothing is read or created.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Root folder of the cache.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of a snapshot: of a commit, or of the commit that a branch or tag (default `main`)
    /// had when it was last downloaded. `None` if there is no such snapshot.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a reference that is not a commit; [`Error::Io`].
    pub fn snapshot(&self, repo: &RepoId, revision: Option<&str>) -> Result<Option<PathBuf>> {
        let folder = self.folder_of(repo);
        let revision = revision.unwrap_or(DEFAULT_REVISION);
        let commit = match read_ref(&folder.join("refs").join(revision))? {
            Some(commit) => commit,
            None if is_commit(revision) => revision.to_owned(),
            None => return Ok(None),
        };
        let snapshot = folder.join("snapshots").join(commit);
        Ok(snapshot.is_dir().then_some(snapshot))
    }

    /// The folder of a repository.
    pub(crate) fn folder_of(&self, repo: &RepoId) -> PathBuf {
        self.root.join(format!("{MODELS}{}", repo.to_string().replace('/', "--")))
    }

    /// Path of a blob, which may not exist yet.
    pub(crate) fn blob(&self, repo: &RepoId, etag: &str) -> PathBuf {
        self.folder_of(repo).join("blobs").join(etag)
    }

    /// Lock file that prevents concurrent downloads of a blob by several programs.
    pub(crate) fn lock_of(&self, repo: &RepoId, etag: &str) -> PathBuf {
        let folder = self.folder_of(repo);
        let name = folder.file_name().unwrap_or_default();
        self.root.join(".locks").join(name).join(format!("{etag}.lock"))
    }

    /// Path of a snapshot's folder, which may not exist yet.
    pub(crate) fn snapshot_of(&self, repo: &RepoId, commit: &str) -> PathBuf {
        self.folder_of(repo).join("snapshots").join(commit)
    }

    /// Links a file of a snapshot to its blob. An existing link to another target is replaced.
    pub(crate) fn link(&self, repo: &RepoId, commit: &str, path: &RepoPath, etag: &str) -> Result<()> {
        let link = path.under(&self.snapshot_of(repo, commit));
        let blob = self.blob(repo, etag);
        if same_file(&link, &blob) {
            return Ok(());
        }
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(Error::io(&link))?;
        }
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        // `..` for each component of the path below the snapshot, and for the snapshot and `snapshots`.
        let up = path.as_str().split('/').count() + 1;
        let target = (0..up).fold(PathBuf::new(), |target, _| target.join("..")).join("blobs").join(etag);
        make_link(&target, &blob, &link).map_err(Error::io(&link))
    }

    /// Records the commit of a branch or tag. A revision that is a commit needs no record.
    pub(crate) fn set_ref(&self, repo: &RepoId, revision: Option<&str>, commit: &str) -> Result<()> {
        let revision = revision.unwrap_or(DEFAULT_REVISION);
        let file = self.folder_of(repo).join("refs").join(revision);
        if revision == commit || read_ref(&file).is_ok_and(|known| known.as_deref() == Some(commit)) {
            return Ok(());
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        // Written to a temporary file and renamed: a reader sees the old commit or the new one.
        let new = file.with_added_extension(format!("{}.tmp", std::process::id()));
        fs::write(&new, commit).map_err(Error::io(&new))?;
        fs::rename(&new, &file).map_err(Error::io(&file))
    }
}

#[cfg(unix)]
fn make_link(target: &Path, _blob: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Symbolic links need a privilege on these systems: creates a hard link or a copy instead.
#[cfg(not(unix))]
fn make_link(_target: &Path, blob: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(blob, link).or_else(|_| fs::copy(blob, link).map(drop))
}

/// Returns true if two paths resolve to the same file.
fn same_file(link: &Path, blob: &Path) -> bool {
    match (link.canonicalize(), blob.canonicalize()) {
        (Ok(link), Ok(blob)) => link == blob,
        _ => false,
    }
}

/// Reads the commit in a file of `refs`; `None` if there is no such file.
fn read_ref(file: &Path) -> Result<Option<String>> {
    if !file.is_file() {
        return Ok(None);
    }
    let commit = read_short(file, MAX_REF_BYTES)?.trim().to_owned();
    if !is_commit(&commit) {
        return Err(Error::Damaged {
            path: file.to_owned(),
            what: format!("{commit:?} is not a commit hash"),
        });
    }
    Ok(Some(commit))
}

/// Returns true if a text is a commit hash, the name of a snapshot's folder.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && is_hex(text)
}

pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn snapshot_is_found_by_branch_and_commit() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(root.path());
        let repo: RepoId = "a/b".parse().expect("a name");
        assert_eq!(cache.snapshot(&repo, None).expect("nothing is wrong"), None);
        let snapshot = root.path().join("models--a--b/snapshots").join(COMMIT);
        fs::create_dir_all(&snapshot).expect("can be made");
        for revision in [None, Some("refs/pr/1")] {
            assert_eq!(cache.snapshot(&repo, revision).expect("nothing is wrong"), None);
            cache.set_ref(&repo, revision, COMMIT).expect("can be written");
            assert_eq!(cache.snapshot(&repo, revision).expect("is there"), Some(snapshot.clone()));
        }
        assert_eq!(cache.snapshot(&repo, Some(COMMIT)).expect("is there"), Some(snapshot));
        assert_eq!(cache.snapshot(&repo, Some(&"0".repeat(40))).expect("nothing is wrong"), None);
    }

    #[test]
    fn reference_that_is_not_a_commit_is_an_error() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(root.path());
        let repo: RepoId = "a/b".parse().expect("a name");
        let refs = root.path().join("models--a--b/refs");
        fs::create_dir_all(&refs).expect("can be made");
        for content in ["../../../secrets", "", "main", &"a".repeat(300)] {
            fs::write(refs.join("main"), content).expect("can be written");
            assert!(matches!(cache.snapshot(&repo, None), Err(Error::Damaged { .. })), "{content}");
        }
    }
}
