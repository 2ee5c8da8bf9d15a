//! Model downloads: selects a model's files, checks their size, and fetches them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cache::is_commit;
use crate::client::{Client, Follow, Method, Request, Subject, encoded};
use crate::download::{Download, missing_bytes, resolve_path};
use crate::repo_path::PathFault;
use crate::selection::Weights;
use crate::{Cache, Error, FileInfo, HubSettings, ModelName, RepoPath, Result};

/// Maximum size of a repository description; the longest real ones have a few megabytes.
const MAX_INFO_BYTES: u64 = 64 << 20;
/// Bytes to leave free on the disk.
const SPARE_BYTES: u64 = 64 << 20;

/// A hub that models are downloaded from.
///
/// ```no_run
/// use lm_hub::{Hub, HubSettings};
///
/// let hub = Hub::new(HubSettings::from_env()?)?;
/// let pull = hub.plan(&"Qwen/Qwen3-0.6B".parse()?)?;
/// println!("{} bytes in {} files", pull.bytes(), pull.files.len());
/// let model = hub.fetch(&pull, &mut |progress| println!("{} bytes", progress.done_bytes))?;
/// println!("it is in {}", model.display());
/// # Ok::<(), lm_hub::Error>(())
/// ```
#[derive(Debug)]
pub struct Hub {
    client: Client,
    cache: Cache,
}

/// The files of a model at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The name requested.
    pub name: ModelName,
    /// The commit that its revision resolved to.
    pub commit: String,
    /// The files, including those that are already cached.
    pub files: Vec<FileInfo>,
    /// The file to load; `None` if the folder is loaded.
    weights_file: Option<RepoPath>,
}

/// Progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullProgress<'a> {
    /// The file being received.
    pub file: &'a RepoPath,
    /// Bytes present, of all files.
    pub done_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}

/// The fields used of a repository's description.
#[derive(Deserialize)]
struct RepoInfo {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Pull {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

impl Hub {
    /// Creates a client with these settings, without sending a request.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for an endpoint that is not a URL.
    pub fn new(settings: HubSettings) -> Result<Self> {
        Ok(Self { client: Client::new(&settings)?, cache: settings.cache })
    }

    /// Queries the files of a model: its weights, configuration, tokenizer, templates, model card and
    /// licence; or of a GGUF model the file that [`ModelName::file`] selects, the `mmproj` file beside it (in
    /// BF16 if there are several formats), model card and licence.
    ///
    /// # Errors
    /// Errors of the hub ([`Error::NoSuchRepo`], [`Error::NoSuchRevision`], [`Error::Gated`], …),
    /// [`Error::Offline`], [`Error::NoWeights`], [`Error::SeveralModels`], [`Error::NoSuchFile`],
    /// [`Error::UnsafePath`].
    pub fn plan(&self, name: &ModelName) -> Result<Pull> {
        let revision = name.revision.as_deref().unwrap_or("main");
        let subject = Subject { repo: &name.repo, revision, file: None };
        let path = format!("/api/models/{}/revision/{}", name.repo, encoded(revision));
        let request = Request { method: Method::Get, path: &path, from: None, follow: Follow::All, subject };
        let response = self.client.send(&request)?;
        let url = response.url.clone();
        let invalid = |what: String| Error::Protocol { url: url.clone(), what };
        let mut text = Vec::new();
        response
            .into_body(MAX_INFO_BYTES)
            .read_to_end(&mut text)
            .map_err(|error| invalid(error.to_string()))?;
        let info: RepoInfo = serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        if !is_commit(&info.sha) {
            return Err(invalid(format!("the commit is {:?}", info.sha)));
        }
        let files = repo_paths(name, &info.siblings)?;
        let weights = Weights::select(name, &files)?;
        let wanted: BTreeSet<_> = weights.with_texts(&files).into_iter().collect();
        let files = wanted.iter().map(|path| self.describe(name, &info.sha, path)).collect::<Result<_>>()?;
        let weights_file = match weights {
            Weights::Gguf(choice) => Some(choice.file),
            Weights::Safetensors(_) => None,
        };
        Ok(Pull { name: name.clone(), commit: info.sha, files, weights_file })
    }

    /// Queries a file's size and checksum.
    fn describe(&self, name: &ModelName, commit: &str, path: &RepoPath) -> Result<FileInfo> {
        let subject = Subject { repo: &name.repo, revision: commit, file: Some(path.as_str()) };
        let address = resolve_path(&name.repo, commit, path.as_str());
        let follow = Follow::SameOrigin;
        let response = self.client.send(&Request {
            method: Method::Head,
            path: &address,
            from: None,
            follow,
            subject,
        })?;
        FileInfo::read(path, &response)
    }

    /// Downloads missing files and returns the path to load: the snapshot's folder, or the GGUF file in it.
    ///
    /// Interrupted connections and earlier incomplete downloads are resumed. The branch or tag is recorded
    /// in the cache when all files are complete.
    ///
    /// # Errors
    /// [`Error::DiskFull`] before anything is written, if the free space is known; [`Error::Checksum`],
    /// [`Error::Connection`], [`Error::Busy`] and other network and disk errors.
    pub fn fetch(&self, pull: &Pull, progress: &mut dyn FnMut(PullProgress<'_>)) -> Result<PathBuf> {
        let Pull { name, commit, files, weights_file } = pull;
        self.check_room(pull)?;
        let total_bytes = pull.bytes();
        let mut done_bytes = 0_u64;
        for file in files {
            let (client, cache, repo) = (&self.client, &self.cache, &name.repo);
            Download { client, cache, repo, commit, file }.run(&mut |bytes| {
                done_bytes = done_bytes.saturating_add_signed(bytes);
                progress(PullProgress { file: &file.path, done_bytes, total_bytes });
            })?;
            self.cache.link(&name.repo, commit, &file.path, &file.etag)?;
        }
        self.cache.set_ref(&name.repo, name.revision.as_deref(), commit)?;
        let snapshot = self.cache.snapshot_of(&name.repo, commit);
        Ok(weights_file.as_ref().map_or_else(|| snapshot.clone(), |file| file.under(&snapshot)))
    }

    fn check_room(&self, pull: &Pull) -> Result<()> {
        let missing = |sum: u64, file| sum.saturating_add(missing_bytes(&self.cache, &pull.name.repo, file));
        let needed = pull.files.iter().fold(0, missing);
        if needed == 0 {
            return Ok(());
        }
        let folder = self.cache.root();
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        match fs4::available_space(folder) {
            Ok(available) if needed.saturating_add(SPARE_BYTES) > available => {
                Err(Error::DiskFull { folder: Path::to_owned(folder), needed, available })
            }
            // If the free space is unknown, writing reports a full disk.
            _ => Ok(()),
        }
    }
}

/// Validates the paths of a repository's files. A path that leads out of the repository is an error.
fn repo_paths(name: &ModelName, siblings: &[Sibling]) -> Result<Vec<RepoPath>> {
    let mut paths = Vec::new();
    for Sibling { rfilename } in siblings {
        match RepoPath::parse(rfilename) {
            Ok(path) => paths.push(path),
            Err(PathFault::Unusual) => {
                tracing::debug!(file = rfilename, "skipped: not every file system supports this name")
            }
            Err(PathFault::Outside) => {
                return Err(Error::UnsafePath { repo: name.repo.to_string(), path: rfilename.clone() });
            }
        }
    }
    Ok(paths)
}
