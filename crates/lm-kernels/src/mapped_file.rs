//! Read-only file mapping, the way weights come in.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::{Error, Result};

/// Page sizes in use are at most this; ranges are narrowed to multiples of it.
#[cfg(unix)]
const LARGEST_PAGE: usize = 64 * 1024;

/// A file's bytes, read by the operating system when they are first touched.
///
/// The file must not be written to or cut short while it is mapped: the bytes would change under the reader, and
/// reading past a new end ends the process. [`MappedFile::check_len`] finds a file that has been cut short before it is read; one
/// that is cut between the check and the reading still ends the process (`SIGBUS` on Unix). Replacing it by a rename is safe.
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
    /// None for an empty file, which cannot be mapped everywhere.
    map: Option<Mmap>,
    file: File,
    path: PathBuf,
}

impl MappedFile {
    /// Maps the whole file at `path`; an empty file gives no bytes.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be opened or mapped, a folder for one.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |action| move |source| Error::File { action, path: path.to_owned(), source };
        let file = File::open(path).map_err(failed("open"))?;
        let path = path.to_owned();
        if file.metadata().map_err(failed("read the size of"))?.len() == 0 {
            return Ok(Self { map: None, file, path });
        }
        // SAFETY: the mapping is private and read-only; that nobody shortens the file is asked of the user above.
        let map = unsafe { Mmap::map(&file) }.map_err(failed("map"))?;
        Ok(Self { map: Some(map), file, path })
    }

    /// Checks that the file is still as long as when it was mapped: to be called before a part of it is read.
    ///
    /// # Errors
    /// [`Error::File`] when it is shorter, or its size cannot be had.
    pub fn check_len(&self) -> Result<()> {
        let failed = |action, source| Error::File { action, path: self.path.clone(), source };
        let len = self.file.metadata().map_err(|source| failed("read the size of", source))?.len();
        if len < self.len() as u64 {
            let reason = format!("it had {} bytes when it was opened, it has {len} now", self.len());
            return Err(failed("read", io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        Ok(())
    }

    /// Tells the operating system that `range` will not be read again soon, so that its memory counts no longer as ours.
    ///
    /// Reading it again is correct and reads from the file. A hint: it has no effect on systems without `madvise`, nor on
    /// the rest of a page at the ends of the range.
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
                // SAFETY: the pages are clean ones of a read-only file mapping: dropped, they are read from the file again.
                let advice = unsafe {
                    map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
                };
                // A refused hint changes nothing but the memory in use.
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
    fn an_empty_file_has_no_bytes() {
        let path = scratch("empty", b"");
        let file = MappedFile::open(&path).unwrap();
        assert!(file.is_empty());
        file.release(0..0);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn released_bytes_are_read_again() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        let path = scratch("release", &bytes);
        let file = MappedFile::open(&path).unwrap();
        assert_eq!(&file[..], &bytes[..]);
        file.release(1..bytes.len() - 1);
        assert_eq!(&file[..], &bytes[..]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_short_is_found() {
        let path = scratch("cut", &[1; 100]);
        let file = MappedFile::open(&path).unwrap();
        file.check_len().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(40).unwrap();
        let error = file.check_len().unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("100 bytes"), "{error:?}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error_with_the_path() {
        let missing = MappedFile::open(Path::new("no/such/file")).unwrap_err();
        assert!(missing.to_string().contains("no/such/file"), "{missing}");
        assert!(MappedFile::open(&std::env::temp_dir()).is_err());
    }
}
