//! Removal of models from the cache.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::listing::{INCOMPLETE, entries};
use super::{Cache, CachedFile, CachedModel};
use crate::selection::{Weights, gguf_choices};
use crate::{Error, ModelName, RepoPath, Result};

/// A planned removal: the paths to delete and the bytes freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The name to remove.
    pub name: ModelName,
    /// Files and folders to delete, in this order: links before the blobs they lead to.
    pub paths: Vec<PathBuf>,
    /// Bytes freed on disk.
    pub bytes: u64,
    /// Bytes that stay because other repositories may use them too: newer versions of `huggingface_hub` keep
    /// files in a shared store with reference counts.
    pub shared_bytes: u64,
}

impl Cache {
    /// Plans the removal of a name: the repository; with a revision, its snapshot and the blobs that no other
    /// one needs; with a file, that GGUF model in all snapshots, or in that of the revision, and with the
    /// last one its `mmproj` file.
    ///
    /// # Errors
    /// [`Error::NotFound`] when none of it is cached; [`Error::NoSuchFile`]; the errors of [`Cache::models`].
    pub fn removal(&self, name: &ModelName) -> Result<Removal> {
        let model = self.model(&name.repo)?;
        let not_found = || Error::NotFound { name: name.to_string(), search_path: vec![self.root.clone()] };
        if !model.folder.is_dir() {
            return Err(not_found());
        }
        if name.file.is_none() && name.revision.is_none() {
            return self.removal_of_all(name, &model);
        }
        let wanted = name.revision.as_deref();
        let is_meant = |commit: &str, revisions: &[String]| {
            wanted.is_none_or(|wanted| wanted == commit || revisions.iter().any(|known| known == wanted))
        };
        let (meant, others): (Vec<_>, Vec<_>) =
            model.snapshots.iter().partition(|snapshot| is_meant(&snapshot.commit, &snapshot.revisions));
        let (mut paths, mut gone, mut stay) = (Vec::new(), Vec::<&CachedFile>::new(), Vec::new());
        stay.extend(others.iter().flat_map(|snapshot| &snapshot.files));
        for snapshot in meant {
            if name.file.is_none() {
                gone.extend(&snapshot.files);
                let refs = snapshot.revisions.iter().map(|revision| model.folder.join("refs").join(revision));
                paths.extend(refs.chain([snapshot.folder.clone()]));
                continue;
            }
            let files: Vec<_> = snapshot.files.iter().map(|file| file.path.clone()).collect();
            let Weights::Gguf(choice) = Weights::select(name, &files)? else { continue };
            let is_last = gguf_choices(&files).len() == 1;
            let is_part = |file: &RepoPath| choice.parts.contains(file) || (is_last && file.is_projector());
            let (meant, others): (Vec<_>, Vec<_>) =
                snapshot.files.iter().partition(|file| is_part(&file.path));
            paths.extend(meant.iter().map(|file| file.path.under(&snapshot.folder)));
            gone.extend(meant);
            stay.extend(others);
        }
        if paths.is_empty() {
            return Err(not_found());
        }
        let mut removal = Removal { name: name.clone(), paths, bytes: 0, shared_bytes: 0 };
        let needed: HashSet<_> = stay.iter().filter_map(|file| file.blob.as_deref()).collect();
        let blobs: HashSet<_> = gone.iter().filter_map(|file| file.blob.as_deref()).collect();
        for blob in blobs.into_iter().filter(|blob| !needed.contains(blob)) {
            let blob = self.blob(&name.repo, blob);
            removal.count(&blob);
            removal.paths.push(blob);
        }
        Ok(removal)
    }

    fn removal_of_all(&self, name: &ModelName, model: &CachedModel) -> Result<Removal> {
        let mut removal = Removal { name: name.clone(), paths: Vec::new(), bytes: 0, shared_bytes: 0 };
        for blob in entries(&model.folder.join("blobs"))? {
            removal.count(&blob.path());
        }
        let locks = self.lock_of(&name.repo, INCOMPLETE);
        removal.paths = [Some(model.folder.as_path()), locks.parent()]
            .into_iter()
            .flatten()
            .filter(|path| path.is_dir())
            .map(Path::to_owned)
            .collect();
        Ok(removal)
    }
}

impl Removal {
    fn count(&mut self, blob: &Path) {
        let is_link = blob.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let bytes = fs::metadata(blob).map_or(0, |metadata| metadata.len());
        let sum = if is_link { &mut self.shared_bytes } else { &mut self.bytes };
        *sum = sum.saturating_add(bytes);
    }

    /// Deletes the paths.
    ///
    /// # Errors
    /// [`Error::Io`] with the first path that could not be deleted; those before it are deleted.
    pub fn execute(&self) -> Result<()> {
        for path in &self.paths {
            let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(path)(error)),
                _ => {}
            }
        }
        Ok(())
    }
}
