//! Read-only memory-mapped files, for loading weights.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Upper bound of the page sizes in use; ranges are narrowed to multiples of it.
#[cfg(unix)]
const LARGEST_PAGE: usize = 64 * 1024;

/// A memory-mapped file, whose bytes are read on first access.
///
/// The file must not be written to or truncated while it is mapped: the bytes would change under the reader,
/// and reading past a new end kills the process. [`MappedFile::check_len`] detects a truncated file before it
/// is read; a truncation between the check and the read still kills the process (`SIGBUS` on Unix). Replacing
/// the file by a rename is safe.
///
/// # Examples
/// ```
/// use lm_kernels::MappedFile;
/// let path = std::env::temp_dir().join(format!("mapped-{}", std::process::id()));
/// std::fs::write(&path, b"weights").expect("a writable temporary folder");
/// assert_eq!(&MappedFile::open(&path)?[..], b"weights");
/// # std::fs::remove_file(&path).expect("the file is there");
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which cannot be mapped on every system.
    map: Option<Mmap>,
    file: File,
    path: PathBuf,
}

impl MappedFile {
    /// Maps the whole file at `path`; an empty file gives no bytes.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be opened or mapped, such as a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |action| move |source| Error::File { action, path: path.to_owned(), source };
        let file = File::open(path).map_err(failed("open"))?;
        let path = path.to_owned();
        if file.metadata().map_err(failed("read the size of"))?.len() == 0 {
            return Ok(Self { map: None, file, path });
        }
        // SAFETY: the mapping is private and read-only; the documentation above requires that the file is not
        // truncated.
        let map = unsafe { Mmap::map(&file) }.map_err(failed("map"))?;
        Ok(Self { map: Some(map), file, path })
    }

    /// Checks that the file is not shorter than when it was mapped. To be called before reading a part of it.
    ///
    /// # Errors
    /// [`Error::File`] when it is shorter, or its size cannot be read.
    pub fn check_len(&self) -> Result<()> {
        let failed = |action, source| Error::File { action, path: self.path.clone(), source };
        let len = self.file.metadata().map_err(|source| failed("read the size of", source))?.len();
        if len < self.len() as u64 {
            let reason = format!("it had {} bytes when it was opened, it has {len} now", self.len());
            return Err(failed("read", io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        Ok(())
    }

    /// Advises the operating system that `range` will not be read again soon, so that its memory is no longer
    /// counted as resident.
    ///
    /// Reading it again is correct and reads from the file. This is a hint: it has no effect on systems
    /// without `madvise`, nor on partial pages at the ends of the range.
    ///
    /// # Panics
    /// When the range is outside the file.
    pub fn release(&self, range: Range<usize>) {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "range {range:?} of {} bytes",
            self.len()
        );
        #[cfg(unix)]
        if let Some(map) = &self.map {
            let start = range.start.next_multiple_of(LARGEST_PAGE);
            let end = range.end / LARGEST_PAGE * LARGEST_PAGE;
            if start < end {
                // SAFETY: the pages are clean pages of a read-only file mapping: once dropped, they are read
                // from the file again.
                let advice = unsafe {
                    map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
                };
                // A failed hint affects only memory use.
                drop(advice);
            }
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("lm-kernels-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn empty_file_maps_no_bytes() {
        let path = scratch("empty", b"");
        let file = MappedFile::open(&path).unwrap();
        assert!(file.is_empty());
        file.release(0..0);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn released_bytes_are_readable() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        let path = scratch("release", &bytes);
        let file = MappedFile::open(&path).unwrap();
        assert_eq!(&file[..], &bytes[..]);
        file.release(1..bytes.len() - 1);
        assert_eq!(&file[..], &bytes[..]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn truncated_file_is_detected() {
        let path = scratch("cut", &[1; 100]);
        let file = MappedFile::open(&path).unwrap();
        file.check_len().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(40).unwrap();
        let error = file.check_len().unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("100 bytes"), "{error:?}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn unmappable_file_is_an_error_with_its_path() {
        let missing = MappedFile::open(Path::new("no/such/file")).unwrap_err();
        assert!(missing.to_string().contains("no/such/file"), "{missing}");
        assert!(MappedFile::open(&std::env::temp_dir()).is_err());
    }
}
