//! File metadata of the hub, and verification of received files.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::cache::is_hex;
use crate::client::Response;
use crate::{RepoPath, Result};

/// Metadata of a file in a repository, from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its path.
    pub path: RepoPath,
    /// Its size.
    pub bytes: u64,
    /// The ETag, which identifies the content: the name of its blob in the cache.
    pub etag: String,
}

impl FileInfo {
    /// Reads the metadata from the headers of a response.
    pub(crate) fn read(path: &RepoPath, response: &Response) -> Result<Self> {
        let etag = response.header("x-linked-etag").or_else(|| response.header("etag"));
        let etag = etag.ok_or_else(|| response.fault("there is no etag"))?;
        let etag = etag.strip_prefix("W/").unwrap_or(&etag).trim_matches('"').to_owned();
        // The ETag becomes a file name.
        let usual = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if etag.is_empty() || etag.len() > 128 || !etag.bytes().all(usual) || etag.starts_with('.') {
            return Err(response.fault(format!("the etag is {etag:?}")));
        }
        let bytes = response.header("x-linked-size").or_else(|| response.header("content-length"));
        let bytes = bytes.ok_or_else(|| response.fault("there is no size"))?;
        let bytes = bytes.parse().map_err(|_| response.fault(format!("the size is {bytes:?}")))?;
        Ok(Self { path: path.clone(), bytes, etag })
    }

    /// Verification of the downloaded bytes, by the ETag: SHA-256, git SHA-1, or only the size if the ETag is
    /// neither.
    pub fn check(&self) -> Check {
        match self.etag.len() {
            64 if is_hex(&self.etag) => Check::Sha256,
            40 if is_hex(&self.etag) => Check::GitSha1,
            _ => Check::SizeOnly,
        }
    }
}

/// Verification of a file's bytes. The hub's ETags are the SHA-256 of large files and the git hash of small
/// ones; other servers may use any ETag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// SHA-256 of the bytes.
    Sha256,
    /// SHA-1 of git's blob header and the bytes. It detects damage; it does not protect against a malicious
    /// hub.
    GitSha1,
    /// File size only.
    SizeOnly,
}

/// Incremental checksum of received bytes.
#[derive(Clone)]
pub(crate) enum Checksum {
    Sha256(Sha256),
    GitSha1(Sha1),
    SizeOnly,
}

impl Checksum {
    pub(crate) fn of(file: &FileInfo) -> Self {
        match file.check() {
            Check::Sha256 => Self::Sha256(Sha256::new()),
            Check::GitSha1 => Self::GitSha1(Sha1::new_with_prefix(format!("blob {}\0", file.bytes))),
            Check::SizeOnly => Self::SizeOnly,
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(sum) => sum.update(bytes),
            Self::GitSha1(sum) => sum.update(bytes),
            Self::SizeOnly => {}
        }
    }

    /// The checksum in hex, as in an ETag; `None` if absent.
    pub(crate) fn finish(self) -> Option<String> {
        match self {
            Self::Sha256(sum) => Some(hex(&sum.finalize())),
            Self::GitSha1(sum) => Some(hex(&sum.finalize())),
            Self::SizeOnly => None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha256 => "SHA-256",
            Self::GitSha1 => "git's SHA-1",
            Self::SizeOnly => "its size only",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(etag_like: &str, bytes: &[u8]) -> Option<String> {
        let path = RepoPath::parse("x").expect("a path");
        let file = FileInfo { path, bytes: bytes.len() as u64, etag: etag_like.to_owned() };
        let mut sum = Checksum::of(&file);
        bytes.chunks(3).for_each(|piece| sum.add(piece));
        sum.finish()
    }

    /// `printf hello | sha256sum`, `printf hello | git hash-object --stdin`
    #[test]
    fn digests_equal_sha256sum_and_git() {
        let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let git = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
        assert_eq!(sum(sha256, b"hello").as_deref(), Some(sha256));
        assert_eq!(sum(git, b"hello").as_deref(), Some(git));
        assert_eq!(sum("W-x", b"hello"), None);
    }
}
