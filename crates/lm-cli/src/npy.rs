//! Writer of NumPy array files.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Writer of a `float32` matrix, row by row, to a temporary file that is renamed when it is complete.
///
/// # Source
/// NumPy's NEP 1, format version 1.0.
pub struct NpyFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    missing_rows: usize,
    width: usize,
}

impl NpyFile {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// When it cannot be written, or `path` is a folder or a device: renaming would replace a device.
    pub fn create(path: &Path) -> Result<Self> {
        ensure!(!path.is_dir(), "{} is a folder", path.display());
        ensure!(path.is_file() || !path.exists(), "{} is not a regular file", path.display());
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part).with_context(|| part.display().to_string())?;
        Ok(Self { path: path.to_owned(), part, out: BufWriter::new(file), missing_rows: 0, width: 0 })
    }

    /// Writes the header of `rows` rows of `width` values, which must follow.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, rows: usize, width: usize) -> Result<()> {
        (self.missing_rows, self.width) = (rows, width);
        Ok(self.out.write_all(&header(rows, width))?)
    }

    /// Writes the next row.
    ///
    /// # Errors
    /// When it cannot be written, has another width, or exceeds the number of rows.
    pub fn push(&mut self, row: &[f32]) -> Result<()> {
        ensure!(row.len() == self.width, "a row of {} values in a matrix of width {}", row.len(), self.width);
        self.missing_rows = self.missing_rows.checked_sub(1).context("one row more than was announced")?;
        for value in row {
            self.out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// When it cannot be written, or rows are missing.
    pub fn finish(mut self) -> Result<()> {
        ensure!(self.missing_rows == 0, "{} rows are missing", self.missing_rows);
        self.out.flush()?;
        fs::rename(&self.part, &self.path).with_context(|| self.path.display().to_string())
    }
}

/// Removes an unfinished file.
impl Drop for NpyFile {
    fn drop(&mut self) {
        // After `finish` the temporary file does not exist.
        let _ = fs::remove_file(&self.part);
    }
}

/// Header: magic, version, length and a Python dictionary, padded so that the values begin at a multiple of
/// 64 bytes.
fn header(rows: usize, width: usize) -> Vec<u8> {
    let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let before = 10; // 6 bytes of magic, 2 of version, 2 of length.
    let len = (before + dictionary.len() + 1).next_multiple_of(64) - before;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // Cannot overflow: two numbers of 20 digits at most give a header of two steps of 64 bytes.
    header.extend(u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(format!("{dictionary:<width$}\n", width = len - 1).as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_equals_numpy() {
        for (rows, width) in [(0, 1), (3, 320), (usize::MAX, usize::MAX)] {
            let bytes = header(rows, width);
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), bytes.len() - 10);
            let text = std::str::from_utf8(&bytes[10..]).expect("is text");
            assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': ("), "{text}");
            assert!(text.contains(&format!("({rows}, {width}), }}")) && text.ends_with('\n'), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn device_is_not_replaced() {
        let error = NpyFile::create(Path::new("/dev/zero")).map(drop).expect_err("is refused");
        assert_eq!(error.to_string(), "/dev/zero is not a regular file");
    }

    #[test]
    fn only_a_complete_file_gets_the_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.npy");
        let mut file = NpyFile::create(&path).expect("can be written");
        file.begin(2, 2).expect("can be written");
        file.push(&[1.0, -2.0]).expect("is a row");
        assert!(file.push(&[1.0]).is_err());
        assert!(file.finish().is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("is a folder").count(), 0);
        let mut file = NpyFile::create(&path).expect("can be written");
        file.begin(1, 2).expect("can be written");
        file.push(&[1.0, -2.0]).expect("is a row");
        assert!(file.push(&[1.0, -2.0]).is_err(), "one too many");
        file.finish().expect("is whole");
        let bytes = fs::read(&path).expect("is there");
        assert_eq!(bytes[bytes.len() - 8..], [0, 0, 128, 63, 0, 0, 0, 192]);
        assert_eq!(fs::read_dir(folder.path()).expect("is a folder").count(), 1);
    }
}
