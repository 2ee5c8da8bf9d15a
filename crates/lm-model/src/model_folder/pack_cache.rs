//! Pack cache: quantised weights on disk from an earlier load.
//!
//! An entry is one safetensors file with the weights of a converted folder and two additional header entries:
//! the *stamp* identifies its source files and how they were quantised, the *checksum* is that of its
//! tensors. An entry with another stamp or checksum is a miss and is replaced.
//!
//! A writer holds the lock of the file `….lock`, writes to `….unfinished` and renames it: readers see a
//! complete entry or none even if the writer fails. A process that does not get the lock continues without
//! the cache.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use lm_formats::{Error as FormatError, FileBytes, MappedFile, file_names};
use lm_kernels::{PackedMatrix, Source, WeightFormat};
use safetensors::SafeTensors;
use serde_json::{Value, json};

use super::quantized_file::QuantizedFile;
use crate::checkpoint::Checkpoint;
use crate::config::describe;
use crate::error::{Result, io_error};
use crate::loader::{LoadProgress, checksum};

const STAMP: &str = "lm.stamp";
const CHECKSUM: &str = "lm.checksum";
/// Placeholder of the same length until the checksum is known.
const UNKNOWN: &str = "................";

/// Entry of one folder in one format.
pub(super) struct PackCacheEntry {
    path: PathBuf,
    /// Expected stamp in its header.
    stamp: String,
}

impl PackCacheEntry {
    /// Computes the path and the stamp of the entry for a checkpoint in `folder`.
    ///
    /// # Errors
    /// When sizes and modification times of the folder's files cannot be read.
    pub(super) fn new(cache: &Path, folder: &Path, plan: &QuantizedFile<'_>) -> Result<Self> {
        let format = plan.format;
        let failed = |source| FormatError::Io { file: folder.display().to_string(), source };
        let folder = folder.canonicalize().map_err(failed)?;
        let mut files = Vec::new();
        for name in [file_names::CONFIG].into_iter().chain(plan.checkpoint.file_names()) {
            files.push(file_stamp(&folder.join(name), name).map_err(failed)?);
        }
        let location = folder.to_string_lossy();
        let stamp = json!({
            "source": location,
            "files": files,
            "form": describe(format),
            "quantizer": quantizer_mark(format)?,
        });
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let place = checksum(location.as_bytes(), |_| {});
        let path = cache.join(format!("{name}-{place:016x}-{format}.safetensors"));
        Ok(Self { path, stamp: stamp.to_string() })
    }

    /// Opens the entry's weights, after writing the entry if no valid one exists.
    pub(super) fn open_or_write(
        &self,
        file: &QuantizedFile<'_>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Checkpoint> {
        match self.open() {
            Ok(checkpoint) => Ok(checkpoint),
            Err(reason) => {
                tracing::debug!(entry = %self.path.display(), %reason, "pack cache entry is written");
                self.write(file, progress)?;
                self.open()
            }
        }
    }

    fn open(&self) -> Result<Checkpoint> {
        let location = self.path.display().to_string();
        let broken = |reason: &str| FormatError::TensorFile { file: location.clone(), reason: reason.into() };
        let bytes = FileBytes::Mapped(Arc::new(MappedFile::open(&self.path)?));
        let checkpoint = Checkpoint::of_file(&location, bytes.clone())?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| broken(&error.to_string()))?;
        let value = |key| header.metadata().as_ref().and_then(|metadata| metadata.get(key));
        if value(STAMP) != Some(&self.stamp) {
            return Err(broken("it was made from other files, or in another way").into());
        }
        if value(CHECKSUM) != Some(&data_checksum(&bytes)) {
            return Err(broken("its checksum is another").into());
        }
        Ok(checkpoint)
    }

    fn write(&self, file: &QuantizedFile<'_>, progress: &mut dyn FnMut(LoadProgress)) -> Result<()> {
        let failed = |source| io_error(&self.path, source);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = self.path.with_extension("lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(lock).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        if self.open().is_ok() {
            return Ok(()); // Another process wrote it before this one got the lock.
        }
        let temp = self.path.with_extension("unfinished");
        let written = self.write_to(&temp, file, progress);
        if written.is_err() {
            // The partial file is useless; if it cannot be removed, the next writer overwrites it.
            let _ = fs::remove_file(&temp);
        }
        written
    }

    /// Writes the entry under a temporary name, then renames it.
    fn write_to(
        &self,
        temp: &Path,
        file: &QuantizedFile<'_>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let failed = |source| io_error(temp, source);
        let mut out = OpenOptions::new()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(temp)
            .map_err(failed)?;
        file.write(&mut out, temp, &[(STAMP, &self.stamp), (CHECKSUM, UNKNOWN)], progress)?;
        // The file is not written to while it is mapped.
        let checksum = data_checksum(&FileBytes::Mapped(Arc::new(MappedFile::open(temp)?)));
        file.write_header(&mut out, &[(STAMP, &self.stamp), (CHECKSUM, &checksum)]).map_err(failed)?;
        out.sync_all().map_err(failed)?;
        fs::rename(temp, &self.path).map_err(|source| io_error(&self.path, source))
    }
}

/// Name, size and modification time of a file.
fn file_stamp(path: &Path, name: &str) -> io::Result<Value> {
    let metadata = fs::metadata(path)?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(json!([name, metadata.len(), changed.as_secs(), changed.subsec_nanos()]))
}

/// Fingerprint of the quantiser: checksum of a few fixed weights after quantisation.
fn quantizer_mark(format: WeightFormat) -> Result<String> {
    let (rows, cols) = (16, 256);
    let values: Vec<f32> = (0..rows * cols).map(|i| ((i * i * 31 + i * 7) % 1009) as f32 - 504.0).collect();
    let stored = PackedMatrix::pack(format, rows, cols, Source::F32(&values))?.to_stored();
    let bytes = stored.map(|stored| [stored.quants, stored.scales].concat()).unwrap_or_default();
    Ok(hexadecimal(checksum(&bytes, |_| {})))
}

/// Checksum of the bytes after the header.
fn data_checksum(file: &FileBytes) -> String {
    let length = file.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let start = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(8).min(file.len());
    hexadecimal(checksum(&file[start..], |range| file.release(start + range.start..start + range.end)))
}

fn hexadecimal(sum: u64) -> String {
    format!("{sum:016x}")
}
