//! Repositories of the test hub, and its responses about them.

use std::net::SocketAddr;

use serde_json::json;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::TOKEN;
use super::http::{Reply, Request};

/// A model repository.
#[derive(Clone, Debug)]
pub struct TestRepo {
    /// `OWNER/NAME`.
    pub name: String,
    /// The commit of `main`.
    pub commit: String,
    /// Its files.
    pub files: Vec<TestFile>,
    /// Access control.
    pub access: Access,
    /// Its former name, which redirects to it.
    pub former_name: Option<String>,
}

/// Access control of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Public.
    Public,
    /// Requests with [`TOKEN`] only; to others it does not exist.
    Private,
    /// Gated: access has not been granted.
    Gated,
}

/// A file of a repository.
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Storage on the hub.
    pub storage: Storage,
}

/// Storage of a file on the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In git: served by the hub itself, with git's SHA-1 as ETag.
    Git,
    /// Large file storage: the hub redirects to another server, with the SHA-256 as ETag.
    Large,
    /// As [`Storage::Git`], with this ETag and this size in the headers.
    Announced {
        /// The ETag.
        etag: String,
        /// The size.
        size: String,
    },
}

impl TestRepo {
    /// A public repository.
    pub fn new(name: &str, files: Vec<TestFile>) -> Self {
        let commit = hex(&Sha1::digest(name));
        Self { name: name.to_owned(), commit, files, access: Access::Public, former_name: None }
    }
}

impl TestFile {
    /// A file stored in git.
    pub fn text(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.into(), storage: Storage::Git }
    }

    /// A file in large file storage.
    pub fn large(path: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), bytes, storage: Storage::Large }
    }

    /// Its ETag, the name of its blob.
    pub fn etag(&self) -> String {
        match &self.storage {
            Storage::Git => {
                hex(&Sha1::digest([format!("blob {}\0", self.bytes.len()).as_bytes(), &self.bytes].concat()))
            }
            Storage::Large => hex(&Sha256::digest(&self.bytes)),
            Storage::Announced { etag, .. } => etag.clone(),
        }
    }
}

/// The response to a request.
pub(super) fn reply(repos: &[TestRepo], request: &Request, files_at: SocketAddr, at_files: bool) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    if at_files {
        return large_file(repos, path.trim_start_matches('/'));
    }
    let api = path.strip_prefix("/api/models/").and_then(|rest| rest.split_once("/revision/"));
    let file = path.split_once("/resolve/").and_then(|(repo, rest)| {
        let (revision, file) = rest.split_once('/')?;
        Some((repo.trim_start_matches('/'), revision, file))
    });
    let (name, revision) = match (api, file) {
        (Some((name, revision)), _) | (None, Some((name, revision, _))) => (name, revision),
        (None, None) => return Reply::new(404, "no such page"),
    };
    if let Some(repo) = repos.iter().find(|repo| repo.former_name.as_deref() == Some(name)) {
        return Reply::new(307, "").with("location", path.replace(name, &repo.name));
    }
    let authorization = request.header("authorization");
    if authorization.as_ref().is_some_and(|value| *value != format!("Bearer {TOKEN}")) {
        return Reply::new(401, "").with("x-error-message", "Invalid credentials in Authorization header");
    }
    let visible = |repo: &&TestRepo| repo.access != Access::Private || authorization.is_some();
    let Some(repo) = repos.iter().filter(visible).find(|repo| repo.name == name) else {
        let status = if authorization.is_some() { 404 } else { 401 };
        return Reply::new(status, "").with("x-error-code", "RepoNotFound");
    };
    if !["main", "refs%2Fpr%2F1", &repo.commit].contains(&revision) {
        return Reply::new(404, "").with("x-error-code", "RevisionNotFound");
    }
    match file {
        None => {
            let files = repo.files.iter().map(|file| json!({"rfilename": file.path}));
            let siblings: Vec<_> = files.collect();
            Reply::new(200, json!({"id": repo.name, "sha": repo.commit, "siblings": siblings}).to_string())
        }
        Some(_) if repo.access == Access::Gated => {
            let status = if authorization.is_some() { 403 } else { 401 };
            Reply::new(status, "").with("x-error-code", "GatedRepo")
        }
        Some((_, _, path)) => match repo.files.iter().find(|file| file.path == path) {
            None => Reply::new(404, "").with("x-error-code", "EntryNotFound"),
            Some(file) => resolved(repo, file, files_at),
        },
    }
}

fn resolved(repo: &TestRepo, file: &TestFile, files_at: SocketAddr) -> Reply {
    let etag = file.etag();
    let reply = match &file.storage {
        Storage::Large => Reply::new(302, "")
            .with("location", format!("http://{files_at}/{etag}?signature=x"))
            .with("x-linked-etag", format!("\"{etag}\""))
            .with("x-linked-size", file.bytes.len().to_string())
            .with("etag", "\"of-the-pointer\""),
        Storage::Git => Reply::new(200, file.bytes.clone()).with("etag", format!("\"{etag}\"")),
        Storage::Announced { size, .. } => Reply::new(200, file.bytes.clone())
            .with("etag", format!("\"{etag}\""))
            .with("x-linked-size", size),
    };
    let is_file = file.storage != Storage::Large;
    let reply = Reply { file: is_file.then(|| file.path.clone()), ..reply };
    reply.with("x-repo-commit", &repo.commit)
}

fn large_file(repos: &[TestRepo], etag: &str) -> Reply {
    let mut files = repos.iter().flat_map(|repo| &repo.files);
    match files.find(|file| file.storage == Storage::Large && file.etag() == etag) {
        Some(file) => Reply { file: Some(file.path.clone()), ..Reply::new(200, file.bytes.clone()) },
        None => Reply::new(404, "no such file"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
