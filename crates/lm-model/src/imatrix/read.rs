//! Reading of importance matrices.

use std::collections::BTreeMap;
use std::path::Path;

use lm_formats::{Error as FormatError, FileBytes, GgufFile, GgufMetadata, GgufTensor};

use super::{
    CHUNK_COUNT, CHUNK_SIZE, COUNTS, Calibration, DATASETS, FILE_TYPE, IMATRIX, ImportanceMatrix, LayerSums,
    SUMS,
};
use crate::error::Result;

impl ImportanceMatrix {
    /// Reads a GGUF file of `llama-imatrix` or `lm imatrix`.
    ///
    /// # Errors
    /// - [`lm_formats::Error::Gguf`], [`lm_formats::Error::UnsupportedValue`] when it is another file, such
    ///   as one of llama.cpp's older form (`.dat`) or a model
    /// - [`lm_formats::Error::MissingTensor`] for sums without counts, and the reverse
    /// - [`lm_formats::Error::TensorDtype`], [`lm_formats::Error::TensorShape`],
    ///   [`crate::Error::TensorValue`] for other types than F32, sums and counts that do not fit each other,
    ///   and numbers that are negative, not finite or all zero
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::read(&path.display().to_string(), FileBytes::map(path)?)
    }

    /// [`open`](Self::open) for the bytes of a file; `name` is its name in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(name: &str, bytes: FileBytes) -> Result<Self> {
        let file = GgufFile::read(name, bytes.clone())?;
        let metadata = file.metadata();
        match metadata.required(FILE_TYPE, GgufMetadata::str)? {
            IMATRIX => {}
            other => return Err(metadata.unsupported(FILE_TYPE, other, IMATRIX).into()),
        }
        let tensors: BTreeMap<_, _> =
            file.tensors().iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        let mut layers = BTreeMap::new();
        for tensor in file.tensors() {
            let suffixes = [(SUMS, COUNTS), (COUNTS, SUMS)];
            let stems = suffixes.map(|(own, other)| Some((tensor.name.strip_suffix(own)?, own, other)));
            let Some((stem, own, other)) = stems.into_iter().flatten().next() else { continue };
            let Some(other) = tensors.get(format!("{stem}{other}").as_str()) else {
                let (location, tensor) = (name.to_owned(), format!("{stem}{other}"));
                return Err(FormatError::MissingTensor { location, tensor }.into());
            };
            if own == SUMS {
                let layer = LayerSums::read(name, &bytes, tensor, other)?;
                layer.check(name, stem)?;
                layers.insert(stem.to_owned(), layer);
            }
        }
        Ok(Self { file: name.to_owned(), layers, calibration: Calibration::read(metadata)? })
    }
}

impl Calibration {
    /// Reads the keys, which older files may lack.
    fn read(metadata: &GgufMetadata) -> Result<Self> {
        let number = |key| {
            Ok::<_, FormatError>(
                metadata.size(key)?.map_or(0, |size| u32::try_from(size).unwrap_or(u32::MAX)),
            )
        };
        let datasets = metadata.strings(DATASETS)?.into_iter().flatten();
        let datasets = datasets.map(|text| text.map(str::to_owned)).collect::<Result<_, _>>()?;
        Ok(Self { datasets, chunk_count: number(CHUNK_COUNT)?, chunk_size: number(CHUNK_SIZE)? })
    }
}

impl LayerSums {
    /// Reads two tensors. One count may apply to all matrices.
    fn read(file: &str, bytes: &[u8], sums: &GgufTensor, counts: &GgufTensor) -> Result<Self> {
        let squares = floats(file, bytes, sums)?;
        let mut counts_read = floats(file, bytes, counts)?;
        let cols = *sums.shape.last().expect("a tensor has dimensions");
        let matrices = squares.len() / cols;
        if counts_read.len() == 1 {
            counts_read = vec![counts_read[0]; matrices];
        }
        if counts_read.len() != matrices {
            return Err(FormatError::TensorShape {
                file: file.to_owned(),
                tensor: counts.name.clone(),
                expected: vec![matrices, 1],
                got: counts.shape.clone(),
            }
            .into());
        }
        Ok(Self { cols, squares, counts: counts_read })
    }
}

/// Elements of a tensor in F32.
fn floats(file: &str, bytes: &[u8], tensor: &GgufTensor) -> Result<Vec<f32>> {
    if tensor.ty.name() != "F32" {
        return Err(FormatError::TensorDtype {
            file: file.to_owned(),
            tensor: tensor.name.clone(),
            got: tensor.ty.name().to_owned(),
            supported: "F32".to_owned(),
        }
        .into());
    }
    Ok(bytes[tensor.range.clone()].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
