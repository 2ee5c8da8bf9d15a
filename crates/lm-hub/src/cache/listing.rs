//! Listing of cached models.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use super::{Cache, MODELS, is_commit, read_ref};
use crate::{Error, RepoId, RepoPath, Result};

/// Maximum folder depth, below a snapshot or in the names of branches.
const MAX_DEPTH: usize = 8;
/// Maximum number of entries of one folder tree.
const MAX_ENTRIES: usize = 100_000;
/// Extension of incomplete blobs.
pub(crate) const INCOMPLETE: &str = "incomplete";

/// A repository in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModel {
    /// Its name.
    pub repo: RepoId,
    /// Its folder.
    pub folder: PathBuf,
    /// Downloaded snapshots, one per commit.
    pub snapshots: Vec<CachedSnapshot>,
    /// Bytes on disk: files shared between snapshots count once; incomplete files are included.
    pub bytes: u64,
    /// Bytes in incomplete files.
    pub incomplete_bytes: u64,
}

/// The files of a repository at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedSnapshot {
    /// The commit.
    pub commit: String,
    /// The branches and tags that pointed to this commit when they were last queried.
    pub revisions: Vec<String>,
    /// Its folder.
    pub folder: PathBuf,
    /// Its files.
    pub files: Vec<CachedFile>,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedFile {
    /// Its path in the repository.
    pub path: RepoPath,
    /// Its size; 0 if the blob is missing.
    pub bytes: u64,
    /// Name of the blob that it links to.
    pub(super) blob: Option<String>,
}

impl Cache {
    /// Lists the model repositories, sorted by name; empty if the cache does not exist.
    ///
    /// # Errors
    /// [`Error::Io`] when a folder cannot be read. A damaged branch or tag is omitted with a warning; its
    /// snapshot has the name of its commit then.
    pub fn models(&self) -> Result<Vec<CachedModel>> {
        let mut models = Vec::new();
        for entry in entries(&self.root)? {
            let name = entry.file_name();
            let repo = name.to_str().and_then(|name| name.strip_prefix(MODELS));
            let Some(repo) = repo.and_then(|repo| repo.replacen("--", "/", 1).parse().ok()) else { continue };
            models.push(self.model(&repo)?);
        }
        models.sort_by(|a, b| a.repo.cmp(&b.repo));
        Ok(models)
    }

    /// Lists the cached snapshots of a repository; empty if it is not cached.
    ///
    /// # Errors
    /// As [`Cache::models`].
    pub fn model(&self, repo: &RepoId) -> Result<CachedModel> {
        let folder = self.folder_of(repo);
        let mut revisions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in walk(&folder.join("refs"))? {
            match read_ref(&path.under(&folder.join("refs"))) {
                Ok(Some(commit)) => revisions.entry(commit).or_default().push(path.to_string()),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "a branch or tag is omitted"),
            }
        }
        let mut snapshots = Vec::new();
        for entry in entries(&folder.join("snapshots"))? {
            let Some(commit) = entry.file_name().to_str().filter(|name| is_commit(name)).map(str::to_owned)
            else {
                continue;
            };
            let files = snapshot_files(&entry.path())?;
            let revisions = revisions.remove(&commit).unwrap_or_default();
            snapshots.push(CachedSnapshot { commit, revisions, folder: entry.path(), files });
        }
        snapshots.sort_by(|a, b| a.commit.cmp(&b.commit));
        let (mut bytes, mut incomplete_bytes) = (0_u64, 0_u64);
        for blob in entries(&folder.join("blobs"))? {
            // A blob can be a link into a store shared between repositories.
            let length = fs::metadata(blob.path()).map_or(0, |metadata| metadata.len());
            bytes = bytes.saturating_add(length);
            if blob.path().extension().is_some_and(|extension| extension == INCOMPLETE) {
                incomplete_bytes = incomplete_bytes.saturating_add(length);
            }
        }
        Ok(CachedModel { repo: repo.clone(), folder, snapshots, bytes, incomplete_bytes })
    }
}

/// Lists the files of a snapshot, sorted by path.
pub(crate) fn snapshot_files(folder: &Path) -> Result<Vec<CachedFile>> {
    let file = |path: RepoPath| {
        let link = path.under(folder);
        let bytes = fs::metadata(&link).map_or(0, |metadata| metadata.len());
        let target = fs::read_link(&link).ok();
        let blob = target.and_then(|target| Some(target.file_name()?.to_str()?.to_owned()));
        CachedFile { path, bytes, blob }
    };
    Ok(walk(folder)?.into_iter().map(file).collect())
}

/// Lists the files below a folder, sorted by path; empty if it does not exist. Links to folders are not
/// followed.
pub(crate) fn walk(root: &Path) -> Result<Vec<RepoPath>> {
    let (mut found, mut folders, mut seen) = (Vec::new(), vec![(String::new(), 0)], 0);
    while let Some((folder, depth)) = folders.pop() {
        for entry in entries(&root.join(&folder))? {
            seen += 1;
            if seen > MAX_ENTRIES {
                let what = format!("it has more than {MAX_ENTRIES} entries");
                return Err(Error::Damaged { path: root.to_owned(), what });
            }
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_dir() => {}
                Ok(_) => found.extend(RepoPath::parse(&path)),
                Err(source) => return Err(Error::Io { path: entry.path(), source }),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lists the entries of a folder; empty if it does not exist.
pub(crate) fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let missing =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<_>>().map_err(Error::io(folder)),
        Err(error) if missing(&error) => Ok(Vec::new()),
        Err(error) => Err(Error::io(folder)(error)),
    }
}
