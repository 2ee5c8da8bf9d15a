//! All tensors of a model folder, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;

use super::safetensors::{Entry, read_header};
use crate::model_folder::{FileBytes, ModelFiles, is_plain_name, parse_json, read_required};
use crate::{Error, FloatDtype, Result, Source};

const SINGLE_FILE: &str = "model.safetensors";
const INDEX_FILE: &str = "model.safetensors.index.json";

/// The tensors of one or several safetensors files; the bytes stay in the files.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    location: String,
    files: Vec<(String, FileBytes)>,
    tensors: BTreeMap<String, (usize, Entry)>,
}

/// The rows of one tensor, in its file.
pub(crate) struct StoredTensor<'a> {
    file: &'a FileBytes,
    range: Range<usize>,
    row_bytes: usize,
}

/// One tensor of a model folder, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the checkpoint.
    pub name: String,
    /// Name of the file.
    pub file: String,
    /// Element type as safetensors writes it: `BF16`.
    pub dtype: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Bytes in the file.
    pub bytes: usize,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Reads the headers of `model.safetensors`, or of all files that its index names.
    pub(crate) fn open(files: &dyn ModelFiles) -> Result<Self> {
        let mut checkpoint = Self { location: files.location(), files: Vec::new(), tensors: BTreeMap::new() };
        if let Some(bytes) = files.read(SINGLE_FILE)? {
            checkpoint.add_file(SINGLE_FILE, bytes)?;
            return Ok(checkpoint);
        }
        let Some(index) = files.read(INDEX_FILE)? else {
            return Err(Error::MissingFile { location: files.location(), file: SINGLE_FILE.into() });
        };
        let Index { weight_map } = parse_json(INDEX_FILE, &index)?;
        if let Some((tensor, path)) = weight_map.iter().find(|(_, path)| !is_plain_name(path)) {
            let (tensor, path) = (tensor.clone(), path.clone());
            return Err(Error::ShardPath { file: INDEX_FILE.into(), tensor, path });
        }
        for file in weight_map.values().collect::<BTreeSet<_>>() {
            checkpoint.add_file(file, read_required(files, file)?)?;
        }
        for (tensor, file) in weight_map {
            if checkpoint.tensors.get(&tensor).is_none_or(|(index, _)| checkpoint.files[*index].0 != file) {
                return Err(Error::MissingTensor { location: file, tensor });
            }
        }
        Ok(checkpoint)
    }

    /// The tensors of one file.
    pub(crate) fn of_file(file: &str, bytes: FileBytes) -> Result<Self> {
        let mut checkpoint = Self { location: file.to_owned(), files: Vec::new(), tensors: BTreeMap::new() };
        checkpoint.add_file(file, bytes)?;
        Ok(checkpoint)
    }

    fn add_file(&mut self, file: &str, bytes: FileBytes) -> Result<()> {
        let index = self.files.len();
        for entry in read_header(file, &bytes)? {
            if let Some((first, _)) = self.tensors.get(&entry.name) {
                let (first, second) = (self.files[*first].0.clone(), file.to_owned());
                return Err(Error::DuplicateTensor { tensor: entry.name, first, second });
            }
            self.tensors.insert(entry.name.clone(), (index, entry));
        }
        self.files.push((file.to_owned(), bytes));
        Ok(())
    }

    /// The tensors as the files describe them, by name.
    pub(crate) fn infos(&self) -> impl Iterator<Item = TensorInfo> {
        self.tensors.values().map(|(file, entry)| TensorInfo {
            name: entry.name.clone(),
            file: self.files[*file].0.clone(),
            dtype: entry.dtype.to_string(),
            shape: entry.shape.clone(),
            bytes: entry.range.len(),
        })
    }

    /// Bytes of a tensor in its file.
    pub(crate) fn tensor_bytes(&self, name: &str) -> usize {
        self.tensors.get(name).map_or(0, |(_, entry)| entry.range.len())
    }

    /// Checks that the tensor is there, has this shape and is stored in a float type.
    pub(crate) fn check(&self, name: &str, shape: &[usize]) -> Result<()> {
        let (file, entry) = self.shaped_entry(name, shape)?;
        float_dtype(file, entry).map(drop)
    }

    /// Checks that the tensor is there, has this shape and is stored in this type.
    pub(crate) fn check_stored(&self, name: &str, dtype: safetensors::Dtype, shape: &[usize]) -> Result<()> {
        let (file, entry) = self.shaped_entry(name, shape)?;
        if entry.dtype == dtype { Ok(()) } else { Err(unsupported_dtype(file, entry, dtype.to_string())) }
    }

    /// Fails on a tensor that `is_known` does not accept.
    pub(crate) fn check_no_others(&self, architecture: &str, is_known: impl Fn(&str) -> bool) -> Result<()> {
        match self.tensors.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((tensor, (file, _))) => Err(Error::UnexpectedTensor {
                file: self.files[*file].0.clone(),
                tensor: tensor.clone(),
                architecture: architecture.into(),
            }),
        }
    }

    /// The type that a tensor is stored in.
    pub(crate) fn dtype(&self, name: &str) -> Result<safetensors::Dtype> {
        Ok(self.entry(name)?.1.dtype)
    }

    /// The tensor's bytes in its file.
    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8]> {
        let (_, entry) = self.entry(name)?;
        Ok(&self.files[self.tensors[name].0].1[entry.range.clone()])
    }

    /// The tensor's elements in its file.
    pub(crate) fn source(&self, name: &str) -> Result<Source<'_>> {
        Ok(Source::from_le_bytes(self.float_dtype(name)?, self.bytes(name)?)?)
    }

    /// The float type that a tensor is stored in.
    pub(crate) fn float_dtype(&self, name: &str) -> Result<FloatDtype> {
        let (file, entry) = self.entry(name)?;
        float_dtype(file, entry)
    }

    /// The rows of a tensor.
    pub(crate) fn tensor(&self, name: &str) -> Result<StoredTensor<'_>> {
        let (_, entry) = self.entry(name)?;
        let rows = entry.shape.first().copied().unwrap_or(1);
        let row_bytes = entry.range.len().checked_div(rows).unwrap_or(0);
        Ok(StoredTensor { file: &self.files[self.tensors[name].0].1, range: entry.range.clone(), row_bytes })
    }

    /// Names of the files that hold the tensors.
    pub(crate) fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// Lets go of the memory that reading a tensor took; its bytes will not be read again soon.
    pub(crate) fn release(&self, name: &str) {
        if let Some((file, entry)) = self.tensors.get(name) {
            self.files[*file].1.release(entry.range.clone());
        }
    }

    fn shaped_entry(&self, name: &str, shape: &[usize]) -> Result<(&str, &Entry)> {
        let (file, entry) = self.entry(name)?;
        if entry.shape != shape {
            let (expected, got) = (shape.to_vec(), entry.shape.clone());
            return Err(Error::TensorShape { file: file.into(), tensor: name.into(), expected, got });
        }
        Ok((file, entry))
    }

    fn entry(&self, name: &str) -> Result<(&str, &Entry)> {
        match self.tensors.get(name) {
            Some((file, entry)) => Ok((&self.files[*file].0, entry)),
            None => Err(Error::MissingTensor { location: self.location.clone(), tensor: name.into() }),
        }
    }
}

impl<'a> StoredTensor<'a> {
    /// The bytes of some rows.
    pub(crate) fn rows(&self, rows: Range<usize>) -> &'a [u8] {
        &self.file[self.place(rows)]
    }

    /// Lets go of the memory that reading some rows took; they will not be read again soon.
    pub(crate) fn release(&self, rows: Range<usize>) {
        self.file.release(self.place(rows));
    }

    fn place(&self, rows: Range<usize>) -> Range<usize> {
        self.range.start + rows.start * self.row_bytes..self.range.start + rows.end * self.row_bytes
    }
}

fn float_dtype(file: &str, entry: &Entry) -> Result<FloatDtype> {
    match entry.dtype {
        safetensors::Dtype::F32 => Ok(FloatDtype::F32),
        safetensors::Dtype::F16 => Ok(FloatDtype::F16),
        safetensors::Dtype::BF16 => Ok(FloatDtype::Bf16),
        _ => Err(unsupported_dtype(file, entry, "F32, F16, BF16".into())),
    }
}

fn unsupported_dtype(file: &str, entry: &Entry, supported: String) -> Error {
    let (tensor, got) = (entry.name.clone(), entry.dtype.to_string());
    Error::TensorDtype { file: file.into(), tensor, got, supported }
}
