//! Download of a file from the hub to its blob: resumed if a part exists, and verified before it gets its
//! name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::cache::INCOMPLETE;
use crate::client::{Client, Follow, Method, Request, Response, Subject, connection, encoded, may_pass};
use crate::file_info::{Checksum, FileInfo};
use crate::{Cache, Error, RepoId, Result};

const PIECE: usize = 1 << 17;

/// A file to download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Download<'a> {
    pub client: &'a Client,
    pub cache: &'a Cache,
    pub repo: &'a RepoId,
    pub commit: &'a str,
    pub file: &'a FileInfo,
}

/// Partially downloaded file, open for appending.
struct Part {
    path: PathBuf,
    file: File,
    bytes: u64,
    sum: Checksum,
}

impl Download<'_> {
    /// Downloads the blob into the cache, unless it exists. `received` is called with the number of bytes as
    /// they arrive, including those already present; a negative number subtracts some.
    pub(crate) fn run(&self, received: &mut dyn FnMut(i64)) -> Result<()> {
        let FileInfo { bytes, etag, .. } = self.file;
        let blob = self.cache.blob(self.repo, etag);
        let _lock = self.lock()?;
        if is_whole(&blob, *bytes) {
            received(signed(*bytes));
            return Ok(());
        }
        let mut part = Part::open(&blob, self.file)?;
        received(signed(part.bytes));
        self.fill(&mut part, received)?;
        let Part { path, file, sum, .. } = part;
        if let Some(got) = sum.finish().filter(|got| got != etag) {
            fs::remove_file(&path).map_err(Error::io(&path))?;
            let expected = etag.clone();
            return Err(Error::Checksum { file: self.file.path.to_string(), expected, got });
        }
        // A crash leaves an incomplete file with another name, never an incomplete blob.
        file.sync_all().map_err(Error::io(&path))?;
        fs::rename(&path, &blob).map_err(Error::io(&blob))
    }

    /// Receives until the file is complete. Consecutive attempts without a new byte are counted against the
    /// retries.
    fn fill(&self, part: &mut Part, received: &mut dyn FnMut(i64)) -> Result<()> {
        let (mut attempt, mut most) = (0, part.bytes);
        while part.bytes < self.file.bytes {
            match self.receive(part, received) {
                Ok(()) => {}
                Err(error) if may_pass(&error) => {
                    attempt = if part.bytes > most { 0 } else { attempt + 1 };
                    most = most.max(part.bytes);
                    if attempt > self.client.retries {
                        return Err(error);
                    }
                    tracing::debug!(%error, file = %self.file.path, bytes = part.bytes, "resuming after an interruption");
                    self.client.pause(attempt);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Requests and receives the missing bytes.
    fn receive(&self, part: &mut Part, received: &mut dyn FnMut(i64)) -> Result<()> {
        let path = resolve_path(self.repo, self.commit, self.file.path.as_str());
        let subject = Subject { repo: self.repo, revision: self.commit, file: Some(self.file.path.as_str()) };
        let from = (part.bytes > 0).then_some(part.bytes);
        let request = Request { method: Method::Get, path: &path, from, follow: Follow::All, subject };
        let response = self.client.send_once(&request)?;
        match (response.status(), from) {
            (206, Some(from)) => self.check_range(&response, from)?,
            // The server sends the whole file, or its file differs from that of the part.
            (200 | 416, Some(from)) => {
                part.clear(self.file)?;
                received(-signed(from));
                if response.status() == 416 {
                    return Ok(());
                }
            }
            (200, None) => {}
            (status, _) => {
                return Err(response.fault(format!("status {status} in response to a file request")));
            }
        }
        let (url, missing) = (response.url.clone(), self.file.bytes - part.bytes);
        // One byte more than expected, to detect excess bytes.
        let mut body = response.into_body(missing + 1).take(missing + 1);
        let mut piece = vec![0; PIECE];
        loop {
            match body.read(&mut piece).map_err(|error| connection(&url, error))? {
                0 if part.bytes == self.file.bytes => return Ok(()),
                0 => return Err(connection(&url, io::Error::from(io::ErrorKind::UnexpectedEof))),
                count if count as u64 > self.file.bytes - part.bytes => {
                    let what = format!("more than the {} bytes that were announced", self.file.bytes);
                    return Err(Error::Protocol { url, what });
                }
                count => {
                    part.add(&piece[..count], self.file.bytes)?;
                    received(signed(count as u64));
                }
            }
        }
    }

    /// Checks that the range starts where requested: otherwise the file would be corrupt.
    fn check_range(&self, response: &Response, from: u64) -> Result<()> {
        let expected = format!("bytes {from}-{}/{}", self.file.bytes - 1, self.file.bytes);
        match response.header("content-range") {
            Some(range) if range == expected => Ok(()),
            range => Err(response
                .fault(format!("the range is {:?}, expected {expected:?}", range.unwrap_or_default()))),
        }
    }

    fn lock(&self) -> Result<File> {
        let path = self.cache.lock_of(self.repo, &self.file.etag);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { file: self.file.path.to_string() }),
            // Some network file systems do not support locks; the checksum then detects conflicting writers.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            Err(TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }
}

impl Part {
    /// Opens the part of a blob; empty if there is none or it is longer than the file.
    fn open(blob: &Path, info: &FileInfo) -> Result<Self> {
        if let Some(folder) = blob.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let path = blob.with_added_extension(INCOMPLETE);
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Error::Damaged { path, what: "it is not a file".to_owned() });
        }
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(Error::io(&path))?;
        let mut sum = Checksum::of(info);
        let mut bytes = file.metadata().map_err(Error::io(&path))?.len();
        if bytes > info.bytes {
            file.set_len(0).map_err(Error::io(&path))?;
            bytes = 0;
        }
        let mut piece = vec![0; PIECE];
        let mut left = bytes;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            file.read_exact(&mut piece[..wanted]).map_err(Error::io(&path))?;
            sum.add(&piece[..wanted]);
            left -= wanted as u64;
        }
        Ok(Self { path, file, bytes, sum })
    }

    fn add(&mut self, piece: &[u8], whole: u64) -> Result<()> {
        self.file.write_all(piece).map_err(|error| write_error(&self.path, whole - self.bytes, error))?;
        self.sum.add(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    fn clear(&mut self, info: &FileInfo) -> Result<()> {
        self.file.set_len(0).map_err(Error::io(&self.path))?;
        (self.bytes, self.sum) = (0, Checksum::of(info));
        Ok(())
    }
}

/// Reports a full disk as such; the part stays, and the download resumes from it when there is space.
fn write_error(path: &Path, needed: u64, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let folder = path.parent().unwrap_or(path).to_owned();
            let available = fs4::available_space(&folder).unwrap_or(0);
            Error::DiskFull { folder, needed, available }
        }
        _ => Error::io(path)(error),
    }
}

/// Returns true if a file exists with its full size.
pub(crate) fn is_whole(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

/// Bytes of a file still to be downloaded.
pub(crate) fn missing_bytes(cache: &Cache, repo: &RepoId, file: &FileInfo) -> u64 {
    let blob = cache.blob(repo, &file.etag);
    if is_whole(&blob, file.bytes) {
        return 0;
    }
    let part = fs::metadata(blob.with_added_extension(INCOMPLETE)).map_or(0, |metadata| metadata.len());
    file.bytes.saturating_sub(part)
}

/// Path of a file's download URL.
pub(crate) fn resolve_path(repo: &RepoId, revision: &str, file: &str) -> String {
    let file: Vec<_> = file.split('/').map(encoded).collect();
    format!("/{repo}/resolve/{}/{}", encoded(revision), file.join("/"))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
