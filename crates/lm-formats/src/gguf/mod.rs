//! GGUF files: one file (or several shards) with a model's metadata, tokenizer and tensors.
//!
//! Source: the GGUF specification (`ggml-org/ggml: docs/gguf.md`) and the reference reader of the Python
//! package `gguf` 0.19.

mod entries;
mod header;
mod metadata;
mod problem;
mod reader;
mod split;
mod tensor_type;
mod tensors;
mod value;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use self::entries::{GgufEntries, GgufEntry};
pub use self::header::{GgufHeader, GgufNewTensor};
pub use self::metadata::{GgufMetadata, GgufStrings};
pub use self::problem::GgufProblem;
use self::reader::Reader;
pub use self::split::{GgufShard, is_later_shard};
pub use self::tensor_type::GgufTensorType;
pub use self::tensors::GgufTensor;
pub use self::value::{GgufValue, GgufValueType};
use crate::{Error, FileBytes, Result};

/// Alignment of the tensors in bytes, where a file names none.
const DEFAULT_ALIGNMENT: usize = 32;
/// Maximum alignment that is accepted; files in use have 32, some 4096.
const MAX_ALIGNMENT: usize = 1 << 20;
/// Supported versions, with 64-bit counts; version 1 has 32-bit counts.
const VERSIONS: [u32; 2] = [2, 3];

/// One GGUF file, version 2 or 3, little endian: its metadata and its tensors' positions.
///
/// The header is validated on reading: counts and lengths against the remaining bytes before any allocation,
/// and each tensor must be inside the file, at a multiple of the alignment, and not overlap another.
///
/// # Examples
/// ```
/// use lm_formats::{FileBytes, GgufFile};
/// let mut bytes = b"GGUF".to_vec();
/// bytes.extend(3_u32.to_le_bytes()); // version
/// bytes.extend(0_u64.to_le_bytes()); // tensors
/// bytes.extend(1_u64.to_le_bytes()); // keys
/// bytes.extend(20_u64.to_le_bytes());
/// bytes.extend(b"general.architecture");
/// bytes.extend(8_u32.to_le_bytes()); // a string
/// bytes.extend(5_u64.to_le_bytes());
/// bytes.extend(b"llama");
/// let file = GgufFile::read("model.gguf", FileBytes::Owned(bytes.into()))?;
/// assert_eq!(file.metadata().architecture()?, "llama");
/// assert!(file.tensors().is_empty());
/// # Ok::<(), lm_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GgufFile {
    metadata: GgufMetadata,
    tensors: Vec<GgufTensor>,
}

impl GgufFile {
    /// Magic bytes at the start of a GGUF file.
    pub const MAGIC: [u8; 4] = *b"GGUF";

    /// Reads the header of a file; `name` is the file's name in errors. The tensors' bytes are not touched.
    ///
    /// # Errors
    /// [`Error::Gguf`] when the file has another format, version or byte order, is truncated, or has an
    /// invalid header.
    pub fn read(name: &str, bytes: FileBytes) -> Result<Self> {
        let len = bytes.len();
        Self::read_header(name, bytes, len)
    }

    /// Reads the header from the first bytes of a file of `len` bytes, such as one that is still being
    /// written or downloaded.
    ///
    /// # Errors
    /// As [`GgufFile::read`].
    pub fn read_header(name: &str, bytes: FileBytes, len: usize) -> Result<Self> {
        let failed = |problem| Error::Gguf { file: name.to_owned(), problem };
        let mut reader = Reader::new(&bytes);
        let (num_tensors, num_keys) = read_counts(&mut reader).map_err(failed)?;
        let entries = metadata::read_entries(&mut reader, num_keys).map_err(failed)?;
        let infos = tensors::read_infos(&mut reader, num_tensors).map_err(failed)?;
        let end = reader.position();
        let metadata = GgufMetadata::new(name, bytes.clone(), entries);
        let alignment = alignment(&metadata)?;
        let tensors = tensors::place(infos, end, alignment, len).map_err(failed)?;
        Ok(Self { metadata, tensors })
    }

    /// Returns true if the path is a file with the GGUF magic, whatever its name.
    pub fn has_magic(path: &Path) -> bool {
        let mut magic = [0; 4];
        let mut read = || File::open(path)?.read_exact(&mut magic);
        path.is_file() && read().is_ok() && magic == Self::MAGIC
    }

    /// Metadata of the file.
    pub fn metadata(&self) -> &GgufMetadata {
        &self.metadata
    }

    /// Tensors, in the order of their offsets.
    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }
}

/// Reads the start of the header; returns the numbers of tensors and keys that the file claims.
fn read_counts(reader: &mut Reader<'_>) -> Result<(u64, u64), GgufProblem> {
    let magic = reader.array("magic")?;
    if magic != GgufFile::MAGIC {
        return Err(GgufProblem::Magic { magic });
    }
    let version = reader.u32("version")?;
    if VERSIONS.contains(&version.swap_bytes()) {
        return Err(GgufProblem::BigEndian);
    }
    if !VERSIONS.contains(&version) {
        return Err(GgufProblem::Version { version });
    }
    Ok((reader.u64("number of tensors")?, reader.u64("number of keys")?))
}

/// Alignment of the tensors' bytes.
fn alignment(metadata: &GgufMetadata) -> Result<usize> {
    const KEY: &str = "general.alignment";
    let Some(bytes) = metadata.size(KEY)? else { return Ok(DEFAULT_ALIGNMENT) };
    if bytes.is_power_of_two() && bytes <= MAX_ALIGNMENT {
        return Ok(bytes);
    }
    Err(metadata.invalid(KEY, bytes, format!("a power of two up to {MAX_ALIGNMENT}")))
}

#[cfg(test)]
mod tests;
