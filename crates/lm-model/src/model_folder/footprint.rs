//! Memory needs of a model, computed before loading it.

use lm_formats::Error as FormatError;
use lm_kernels::{CacheLayout, KvDtype, PAGE_LEN, WeightFormat};

use crate::architectures::Architecture;
use crate::checkpoint::{Blocks, Checkpoint, TensorLocation};
use crate::error::Result;
use crate::spec::DecoderSpec;

/// Sizes of a model's weights and cache in host memory, in each format.
///
/// ```
/// use lm_model::{KvDtype, ModelFolder, WeightFormat};
///
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
/// let footprint = ModelFolder::open(folder)?.footprint()?;
/// assert!(footprint.weight_bytes(Some(WeightFormat::Q4)) < footprint.weight_bytes(None));
/// assert!(footprint.cache_bytes(1000, KvDtype::Q8) < footprint.cache_bytes(1000, KvDtype::F16));
/// # Ok::<(), lm_model::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Footprint {
    matrices: Vec<Matrix>,
    /// Elements of norms, biases and other parameters that are f32.
    vector_elements: u64,
    quantized: Option<WeightFormat>,
    cache: CacheLayout,
    context_len: usize,
}

/// Packed parameter: one matrix, or a stack of them.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    count: usize,
    rows: usize,
    cols: usize,
    stored: WeightFormat,
    /// True if it keeps its format in every case.
    keeps_floats: bool,
}

impl Footprint {
    pub(super) fn read(
        checkpoint: &Checkpoint,
        architecture: &Architecture,
        spec: &DecoderSpec,
        blocks: Option<WeightFormat>,
    ) -> Result<Self> {
        let (mut matrices, mut vector_elements, mut quantized) = (Vec::new(), 0_u64, blocks);
        for (param, shape) in spec.params() {
            let elements = shape.iter().fold(1_u64, |elements, &len| elements.saturating_mul(len as u64));
            let dimensions = if param.stays_f32() { &[] } else { shape.as_slice() };
            let [stack @ .., rows, cols] = dimensions else {
                vector_elements = vector_elements.saturating_add(elements);
                continue;
            };
            let name = (architecture.weight_name)(param);
            let format = blocks.filter(|_| !param.keeps_floats());
            let stored =
                match format.and_then(|format| Some((format, Blocks::of(&name, format, *rows, *cols)?))) {
                    Some((format, blocks)) => {
                        blocks.check(checkpoint)?;
                        format
                    }
                    None => {
                        let location = match blocks {
                            Some(_) => TensorLocation::whole(&name),
                            None => architecture.location(spec, param, checkpoint),
                        };
                        checkpoint.check(&location, &shape)?;
                        let ty = checkpoint.rows(&location)?.ty();
                        ty.format().ok_or_else(|| FormatError::TensorDtype {
                            file: checkpoint.location().to_owned(),
                            tensor: name.clone(),
                            got: ty.to_string(),
                            supported: "a format of weights".to_owned(),
                        })?
                    }
                };
            if let WeightFormat::Ggml(_) = stored {
                quantized = Some(stored);
            }
            let count = stack.iter().product();
            let keeps_floats = param.keeps_floats();
            matrices.push(Matrix { count, rows: *rows, cols: *cols, stored, keeps_floats });
        }
        let (cache, context_len) = (spec.cache_layout(), spec.context_len);
        Ok(Self { matrices, vector_elements, quantized, cache, context_len })
    }

    /// Adds the tensors of an encoder, under these prefixes: matrices always keep the format of the file.
    pub(super) fn add_floats(&mut self, checkpoint: &Checkpoint, prefixes: &[&str]) {
        for (_, shape, ty) in checkpoint.under(prefixes) {
            let elements = shape.iter().fold(1_usize, |product, &n| product.saturating_mul(n));
            // A stack of tables has the rows of all; a convolution has a row for each output. Kernels of
            // single channels are vectors.
            let rows = match shape {
                [] | [_] => None,
                [_, 1, kernel] if *kernel > 1 => None,
                [outputs, _, 1] => Some(*outputs),
                [outputs, _, _, _, ..] => Some(*outputs),
                [stack @ .., _] => Some(stack.iter().product()),
            };
            match (rows, ty.format()) {
                (Some(rows), Some(stored)) => {
                    let (count, cols) = (1, elements / rows.max(1));
                    self.matrices.push(Matrix { count, rows, cols, stored, keeps_floats: true });
                }
                _ => self.vector_elements = self.vector_elements.saturating_add(elements as u64),
            }
        }
    }

    /// Bytes of the weights with the matrices packed in `format`; `None` keeps the stored formats. It is the
    /// [`weight_bytes`](crate::ModelInfo::weight_bytes) of a model loaded this way on a CPU device.
    pub fn weight_bytes(&self, format: Option<WeightFormat>) -> u64 {
        let of_matrix = |matrix: &Matrix| {
            let format =
                format.filter(|_| !matrix.keeps_floats).unwrap_or(matrix.stored).for_rows_of(matrix.cols);
            let bytes = format.matrix_bytes(matrix.rows, matrix.cols);
            bytes.map_or(u64::MAX, |bytes| (bytes as u64).saturating_mul(matrix.count as u64))
        };
        let vectors = self.vector_elements.saturating_mul(size_of::<f32>() as u64);
        self.matrices.iter().map(of_matrix).fold(vectors, u64::saturating_add)
    }

    /// Bytes of a cache for `tokens` tokens in every layer, rounded up to whole pages.
    pub fn cache_bytes(&self, tokens: usize, dtype: KvDtype) -> u64 {
        self.cache.host_bytes(tokens.div_ceil(PAGE_LEN), dtype) as u64
    }

    /// Quantisation of the files, which is then the only available one; `None` for floats. For a GGUF file
    /// with several block types, one of them.
    pub fn quantized(&self) -> Option<WeightFormat> {
        self.quantized
    }

    /// Format of the largest share of the stored weights.
    pub fn stored_format(&self) -> Option<WeightFormat> {
        most_first(self.matrices.iter()).first().copied()
    }

    /// Formats of the stored matrices that a quantisation converts, that of most weights first.
    pub fn quantizable_formats(&self) -> Vec<WeightFormat> {
        most_first(self.quantizable())
    }

    /// Mean number of bits per weight, scales included, of the matrices that a quantisation converts; `None`
    /// as stored. 0 for a model without such matrices.
    pub fn bits_per_weight(&self, format: Option<WeightFormat>) -> f64 {
        let elements: f64 = self.quantizable().map(Matrix::elements).sum();
        let bits = |matrix: &Matrix| {
            let format = format.unwrap_or(matrix.stored).for_rows_of(matrix.cols);
            matrix.elements() * bits_of(format, matrix.cols)
        };
        self.quantizable().map(bits).sum::<f64>() / elements.max(1.0)
    }

    fn quantizable(&self) -> impl Iterator<Item = &Matrix> {
        self.matrices.iter().filter(|matrix| !matrix.keeps_floats)
    }

    /// Maximum number of tokens of a sequence.
    pub fn context_len(&self) -> usize {
        self.context_len
    }
}

impl Matrix {
    fn elements(&self) -> f64 {
        self.count as f64 * self.rows as f64 * self.cols as f64
    }
}

/// Stored formats of matrices, that of most weights first.
fn most_first<'a>(matrices: impl Iterator<Item = &'a Matrix>) -> Vec<WeightFormat> {
    let mut formats: Vec<(WeightFormat, f64)> = Vec::new();
    for matrix in matrices {
        match formats.iter_mut().find(|row| row.0 == matrix.stored) {
            Some(row) => row.1 += matrix.elements(),
            None => formats.push((matrix.stored, matrix.elements())),
        }
    }
    formats.sort_by(|a, b| b.1.total_cmp(&a.1));
    formats.into_iter().map(|row| row.0).collect()
}

/// Bits per weight of a matrix with so many columns: in files for block types, in memory for other formats.
fn bits_of(format: WeightFormat, cols: usize) -> f64 {
    /// Rows that are packed together.
    const ROWS: usize = 16;
    match format {
        WeightFormat::Ggml(ty) => 8.0 * ty.block_bytes() as f64 / ty.block_len() as f64,
        format => {
            let bytes = format.matrix_bytes(ROWS, cols).unwrap_or(0);
            8.0 * bytes as f64 / (ROWS * cols.max(1)) as f64
        }
    }
}
