//! Downloading a model: what belongs to it, how much that is, and then the files.

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

/// Longest description of a repository that is read; the longest real ones have a few megabytes.
const MAX_INFO_BYTES: u64 = 64 << 20;
/// Room that is left on the disk.
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
    /// The name that was asked for.
    pub name: ModelName,
    /// The commit at which its revision was.
    pub commit: String,
    /// The files, those that are in the cache already included.
    pub files: Vec<FileInfo>,
    /// The file to load; none where the folder is what is loaded.
    weights_file: Option<RepoPath>,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullProgress<'a> {
    /// The file that is being received.
    pub file: &'a RepoPath,
    /// Bytes of all files that are there.
    pub done_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}

/// What is read of the description of a repository.
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
    /// A hub with these settings; nothing is asked yet.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for an endpoint that is no address.
    pub fn new(settings: HubSettings) -> Result<Self> {
        Ok(Self { client: Client::new(&settings)?, cache: settings.cache })
    }

    /// Asks what belongs to a model: its weights, configuration, tokenizer, templates, card and licence, or with
    /// [`ModelName::file`] that GGUF model with card and licence.
    ///
    /// # Errors
    /// What the hub refuses ([`Error::NoSuchRepo`], [`Error::NoSuchRevision`], [`Error::Gated`], …), [`Error::Offline`],
    /// [`Error::NoWeights`], [`Error::SeveralModels`], [`Error::NoSuchFile`], [`Error::UnsafePath`].
    pub fn plan(&self, name: &ModelName) -> Result<Pull> {
        let revision = name.revision.as_deref().unwrap_or("main");
        let subject = Subject { repo: &name.repo, revision, file: None };
        let path = format!("/api/models/{}/revision/{}", name.repo, encoded(revision));
        let request = Request { method: Method::Get, path: &path, from: None, follow: Follow::All, subject };
        let answer = self.client.ask(&request)?;
        let url = answer.url.clone();
        let invalid = |what: String| Error::Protocol { url: url.clone(), what };
        let mut text = Vec::new();
        answer
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

    /// Asks for a file's size and checksum.
    fn describe(&self, name: &ModelName, commit: &str, path: &RepoPath) -> Result<FileInfo> {
        let subject = Subject { repo: &name.repo, revision: commit, file: Some(path.as_str()) };
        let address = resolve_path(&name.repo, commit, path.as_str());
        let follow = Follow::SameOrigin;
        let answer = self.client.ask(&Request {
            method: Method::Head,
            path: &address,
            from: None,
            follow,
            subject,
        })?;
        FileInfo::read(path, &answer)
    }

    /// Downloads what is missing and gives the path to load: of the snapshot's folder, or of the GGUF file in it.
    ///
    /// A break in a connection is gone on from; what a run leaves behind, the next one goes on with. The branch or tag is noted
    /// in the cache when all files are there.
    ///
    /// # Errors
    /// [`Error::DiskFull`] before anything is written, where that can be known; [`Error::Checksum`], [`Error::Connection`],
    /// [`Error::Busy`] and others of the network and the disk.
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
            // Where the system does not tell, writing will.
            _ => Ok(()),
        }
    }
}

/// The paths that a model can be made of. One that leads out of the repository ends it all.
fn repo_paths(name: &ModelName, siblings: &[Sibling]) -> Result<Vec<RepoPath>> {
    let mut paths = Vec::new();
    for Sibling { rfilename } in siblings {
        match RepoPath::parse(rfilename) {
            Ok(path) => paths.push(path),
            Err(PathFault::Unusual) => {
                tracing::debug!(file = rfilename, "left out: not every system has such names")
            }
            Err(PathFault::Outside) => {
                return Err(Error::UnsafePath { repo: name.repo.to_string(), path: rfilename.clone() });
            }
        }
    }
    Ok(paths)
}
