//! Tensors of a model folder by name, in all stored forms of checkpoints.

mod attach;
mod attach_groups;
mod checks;
mod fp8_mxfp4_scales;
mod gptq_awq_groups;
mod names;
mod samples;
mod stored_quants;
mod stored_rows;
mod tensor_location;
mod tensor_type;

pub(crate) use self::names::{ADAPTER_PREFIX, LayerParam, Param, Piece, hugging_face_name};
pub(crate) use self::stored_quants::Blocks;
pub(crate) use self::stored_rows::{RowOrder, StoredRows, StoredValues};
pub(crate) use self::tensor_location::{SliceRows, TensorLocation};
pub(crate) use self::tensor_type::{LOADABLE, TensorType};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lm_formats::{
    Error as FormatError, FileBytes, MAX_TABLE_BYTES, ModelFiles, SafetensorsTensor, file_names,
    is_plain_name, parse_json_up_to, read_required, safetensors_tensors,
};
use lm_kernels::{GgmlType, Source};
use serde::Deserialize;

use self::fp8_mxfp4_scales::{Scales, StoredScales};
use self::gptq_awq_groups::{Groups, StoredGroups, bytes_of};
use self::names::{is_of_base_model, text_model_name};
use self::stored_rows::{Coding, Run};
use self::tensor_location::{ColumnRange, RowRange, TensorSlice};
use crate::error::{Error, Result};

/// Tensors of one or several files; the bytes stay in the files.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    location: String,
    files: Vec<(String, FileBytes)>,
    /// By their names in a text-only checkpoint.
    tensors: BTreeMap<String, StoredTensor>,
    /// Tensors stored in parts: the names of the parts, whose rows follow each other.
    joined: BTreeMap<String, Vec<String>>,
    /// True if the tensors are those of a decoder without its head, as an embedding model stores it.
    of_base_model: bool,
}

/// Location and form of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    /// Index of the file.
    pub(crate) file: usize,
    pub(crate) ty: TensorType,
    pub(crate) shape: Vec<usize>,
    /// Byte range in the file.
    pub(crate) range: Range<usize>,
    pub(crate) order: RowOrder,
    pub(crate) values: StoredValues,
    pub(crate) coding: StoredCoding,
}

/// Encoding of a tensor's rows.
#[derive(Clone, Debug, Default)]
pub(crate) enum StoredCoding {
    /// Plain rows.
    #[default]
    Rows,
    /// Rows of codes with scales in another tensor.
    Scaled(StoredScales),
    /// Group-wise codes with scales and zero points in two other tensors.
    Groups(Box<StoredGroups>),
}

/// Tensor of a model folder, as described by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the checkpoint.
    pub name: String,
    /// Name of the file.
    pub file: String,
    /// Element type: `BF16`, or a GGUF block type such as `Q4_K`.
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
        let mut checkpoint = Self::new(files.location());
        if let Some(bytes) = files.read(file_names::WEIGHTS)? {
            checkpoint.add_file(file_names::WEIGHTS, bytes)?;
            return Ok(checkpoint);
        }
        let Some(index) = files.read(file_names::WEIGHTS_INDEX)? else {
            return Err(FormatError::MissingFile {
                location: files.location(),
                file: file_names::WEIGHTS.into(),
            }
            .into());
        };
        let Index { weight_map } = parse_json_up_to(MAX_TABLE_BYTES, file_names::WEIGHTS_INDEX, &index)?;
        if let Some((tensor, path)) = weight_map.iter().find(|(_, path)| !is_plain_name(path)) {
            let (tensor, path) = (tensor.clone(), path.clone());
            return Err(Error::ShardPath { file: file_names::WEIGHTS_INDEX.into(), tensor, path });
        }
        for file in weight_map.values().collect::<BTreeSet<_>>() {
            checkpoint.add_file(file, read_required(files, file)?)?;
        }
        for (tensor, file) in weight_map {
            if checkpoint
                .tensors
                .get(&*text_model_name(&tensor))
                .is_none_or(|stored| checkpoint.files[stored.file].0 != file)
            {
                return Err(FormatError::MissingTensor { location: file, tensor }.into());
            }
        }
        Ok(checkpoint)
    }

    /// Reads the header of one file.
    pub(crate) fn of_file(file: &str, bytes: FileBytes) -> Result<Self> {
        let mut checkpoint = Self::new(file.to_owned());
        checkpoint.add_file(file, bytes)?;
        Ok(checkpoint)
    }

    /// Creates an empty checkpoint; `location` is the location of its tensors, for messages.
    pub(crate) fn new(location: String) -> Self {
        let (tensors, joined) = (BTreeMap::new(), BTreeMap::new());
        Self { location, files: Vec::new(), tensors, joined, of_base_model: false }
    }

    /// Adds a safetensors file.
    fn add_file(&mut self, file: &str, bytes: FileBytes) -> Result<()> {
        let entries = safetensors_tensors(file, &bytes)?;
        self.of_base_model |= entries.iter().any(|entry| is_of_base_model(&entry.name));
        let stored = entries.into_iter().map(|SafetensorsTensor { name, dtype, shape, range }| {
            let ty = TensorType::Plain(dtype);
            let (order, values) = (RowOrder::default(), StoredValues::default());
            (
                text_model_name(&name).into_owned(),
                StoredTensor { file: 0, ty, shape, range, order, values, coding: StoredCoding::Rows },
            )
        });
        self.add_tensors(file, bytes, stored)
    }

    /// Adds the tensors of a file, each under its name in the model. Their ranges must lie inside the file.
    pub(crate) fn add_tensors(
        &mut self,
        file: &str,
        bytes: FileBytes,
        tensors: impl IntoIterator<Item = (String, StoredTensor)>,
    ) -> Result<()> {
        let index = self.files.len();
        self.files.push((file.to_owned(), bytes));
        for (name, tensor) in tensors {
            if let Some(first) = self.tensors.get(&name) {
                let (first, second) = (self.files[first.file].0.clone(), file.to_owned());
                return Err(Error::DuplicateTensor { tensor: name, first, second });
            }
            self.tensors.insert(name, StoredTensor { file: index, ..tensor });
        }
        Ok(())
    }

    /// Declares tensors that consist of the rows of others.
    pub(crate) fn join(&mut self, joined: impl IntoIterator<Item = (String, Vec<String>)>) {
        self.joined.extend(joined);
    }

    /// Location of a tensor, which may be in parts.
    pub(crate) fn locate(&self, name: &str) -> TensorLocation {
        match self.joined.get(name) {
            Some(parts) if !parts.is_empty() => TensorLocation::stacked(parts.iter().cloned()),
            _ => TensorLocation::whole(name),
        }
    }

    /// Tensors as described by the files, by name.
    pub(crate) fn infos(&self) -> impl Iterator<Item = TensorInfo> {
        self.tensors.iter().map(|(name, stored)| TensorInfo {
            name: name.clone(),
            file: self.files[stored.file].0.clone(),
            dtype: stored.ty.to_string(),
            shape: stored.shape.clone(),
            bytes: stored.range.len(),
        })
    }

    /// Returns true if a tensor of this name exists.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns true if both tensors exist and do not hold the same bytes.
    pub(crate) fn differ(&self, one: &str, other: &str) -> bool {
        let (Some(one), Some(other)) = (self.tensors.get(one), self.tensors.get(other)) else { return false };
        let bytes = |stored: &StoredTensor| self.files[stored.file].1.get(stored.range.clone());
        let form = |stored: &StoredTensor| (stored.ty, matches!(stored.coding, StoredCoding::Rows));
        form(one) != form(other) || form(one).1 && bytes(one) != bytes(other)
    }

    /// Returns true for the tensors of a decoder without its head.
    pub(crate) fn is_of_base_model(&self) -> bool {
        self.of_base_model
    }

    /// Shape of a tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|stored| stored.shape.as_slice())
    }

    /// Size of a tensor in its file in bytes.
    pub(crate) fn tensor_bytes(&self, name: &str) -> usize {
        self.tensors.get(name).map_or(0, |stored| stored.range.len())
    }

    /// Names and shapes of the tensors under these prefixes, with their types.
    pub(crate) fn under<'a>(
        &'a self,
        prefixes: &'a [&str],
    ) -> impl Iterator<Item = (&'a str, &'a [usize], TensorType)> {
        let under = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let tensors = self.tensors.iter().filter(move |(name, _)| under(name));
        tensors.map(|(name, stored)| (name.as_str(), stored.shape.as_slice(), stored.ty))
    }

    /// Bytes of the tensors under these prefixes in the files.
    pub(crate) fn bytes_under(&self, prefixes: &[&str]) -> u64 {
        self.under(prefixes).map(|(name, ..)| self.tensor_bytes(name) as u64).sum()
    }

    /// Returns true if all tensors of a location exist.
    pub(crate) fn has(&self, location: &TensorLocation) -> bool {
        location.slices().iter().all(|slice| self.tensors.contains_key(&slice.tensor))
    }

    /// Rows of a parameter.
    pub(crate) fn rows(&self, location: &TensorLocation) -> Result<StoredRows<'_>> {
        let first = self.stored(location.name())?;
        let row_len = match location.slices() {
            [TensorSlice { rows: SliceRows::Columns(rows), .. }, ..] => rows.inputs,
            _ => first.shape.last().copied().filter(|_| first.shape.len() > 1).unwrap_or(1),
        };
        self.rows_of(location, row_len)
    }

    /// Elements of a vector, as rows.
    pub(crate) fn elements(&self, location: &TensorLocation) -> Result<StoredRows<'_>> {
        self.rows_of(location, 1)
    }

    /// Elements of a parameter in rows of `row_len`.
    pub(crate) fn rows_of(&self, location: &TensorLocation, row_len: usize) -> Result<StoredRows<'_>> {
        let first = self.stored(location.name())?;
        let row_bytes = first.ty.bytes(row_len).unwrap_or(0);
        let mut rows = StoredRows { ty: first.ty, row_bytes, values: first.values, runs: Vec::new() };
        for slice in location.slices() {
            let stored = self.stored(&slice.tensor)?;
            if stored.ty != rows.ty {
                return Err(self.unsupported_type(
                    &slice.tensor,
                    stored,
                    &format!("{}, as {}", rows.ty, location.name()),
                ));
            }
            let all = stored.range.len().checked_div(row_bytes).unwrap_or(0);
            let (_, file) = &self.files[stored.file];
            let coding = match &stored.coding {
                StoredCoding::Rows => Coding::Rows,
                StoredCoding::Scaled(StoredScales { file, range, kind }) => {
                    Coding::Scaled(Scales { file: &self.files[*file].1, range: range.clone(), kind: *kind })
                }
                StoredCoding::Groups(groups) => Coding::Groups(self.groups(stored, groups)),
            };
            if matches!(slice.rows, SliceRows::Columns(_))
                && (stored.ty.float().is_none() || !matches!(stored.coding, StoredCoding::Rows))
            {
                return Err(self.unsupported_type(&slice.tensor, stored, "F32, F16, BF16"));
            }
            let (RowRange { first, step, count, .. }, coding) = match slice.rows {
                SliceRows::All => (RowRange { first: 0, step: 1, count: all, of: all }, coding),
                SliceRows::Range(rows) => (rows, coding),
                SliceRows::Columns(ColumnRange { matrices, inputs, height, columns, .. }) => {
                    let coding =
                        Coding::Columns { inputs, height, of: columns.of, per_matrix: columns.count };
                    (RowRange { count: matrices * columns.count, ..columns }, coding)
                }
            };
            let (start, order) = (stored.range.start, stored.order);
            rows.runs.push(Run { file, start, first, step, count, order, coding });
        }
        Ok(rows)
    }

    /// Reads the values of a vector.
    pub(crate) fn vector(&self, location: &TensorLocation) -> Result<Vec<f32>> {
        let rows = self.elements(location)?;
        let float = rows.ty().float().ok_or_else(|| {
            let tensor = location.name();
            self.stored(tensor)
                .map_or_else(|error| error, |stored| self.unsupported_type(tensor, stored, LOADABLE))
        })?;
        rows.check_files()?;
        let bytes = rows.read_all();
        let source = Source::from_le_bytes(float, &bytes)?;
        let mut values = vec![0.0; source.len()];
        source.read(0, &mut values);
        rows.values.restore(&mut values).map_err(|value| {
            let (file, tensor) = (self.location.clone(), location.name().to_owned());
            Error::TensorValue { file, tensor, value, expected: "a number below 0".into() }
        })?;
        rows.release_all();
        Ok(values)
    }

    /// Location of the tensors, for messages.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// Names of the files that hold the tensors.
    pub(crate) fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    fn groups<'a>(&'a self, codes: &StoredTensor, stored: &'a StoredGroups) -> Groups<'a> {
        let ty = codes.ty.blocks().unwrap_or(GgmlType::Q5_0);
        let codes = &self.files[codes.file].1[codes.range.clone()];
        let scales = bytes_of(&self.files, &stored.scales);
        let zeros = stored.zeros.as_ref().map(|location| bytes_of(&self.files, location));
        Groups { stored, ty, codes, zeros, scales }
    }

    fn stored(&self, name: &str) -> Result<&StoredTensor> {
        let missing = || FormatError::MissingTensor { location: self.location.clone(), tensor: name.into() };
        Ok(self.tensors.get(name).ok_or_else(missing)?)
    }

    fn file_of(&self, stored: &StoredTensor) -> String {
        self.files[stored.file].0.clone()
    }

    fn unsupported_type(&self, name: &str, stored: &StoredTensor, supported: &str) -> Error {
        let (file, got) = (self.file_of(stored), stored.ty.to_string());
        FormatError::TensorDtype { file, tensor: name.into(), got, supported: supported.into() }.into()
    }
}
