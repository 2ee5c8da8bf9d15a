//! Weight matrices in device memory.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata};
use burn::tensor::{DType, Device as BurnDevice, Int, Tensor, TensorData};

use super::backend::Bridge;
use super::{InputSums, from_host};
use crate::device::Device;
use crate::error::Result;
use crate::host::{GgmlType, PackedMatrix, Source, WeightFormat};

/// A weight matrix `[rows, cols]` = `[out, in]`, in the memory of the device that multiplies by it.
///
/// CPU devices keep a [`PackedMatrix`] in its format. A GPU keeps Q8, Q4 and ggml's Q8_0 and Q4_0 packed in
/// 32-bit words with their scales, and all others as f32. Clones share the memory.
///
/// ```
/// use lm_kernels::{Device, Source, Weight, WeightFormat};
///
/// let values = vec![0.5f32; 16 * 64];
/// let weight = Weight::load(Device::Cpu, WeightFormat::Q4, 16, 64, Source::F32(&values))?;
/// assert_eq!((weight.rows(), weight.cols()), (16, 64));
/// assert!(weight.bytes() < values.len());
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone)]
pub struct Weight {
    rows: usize,
    cols: usize,
    format: WeightFormat,
    matrix: Matrix<Dispatch>,
    inputs: Option<Arc<InputSums>>,
}

/// Representations of a weight as operation arguments.
#[derive(ExtensionType)]
pub enum Matrix<B: Backend> {
    /// Opaque to burn.
    Host(Arc<PackedMatrix>),
    /// `[rows, cols]`.
    Dense(FloatTensor<B>),
    /// Blocks of 32 unsigned quants, lowest bits first, and a scale for each; the last block of a row is
    /// padded.
    Packed {
        /// `[rows, blocks * BLOCK * bits / 32]`
        words: IntTensor<B>,
        /// `[rows, blocks]`
        scales: FloatTensor<B>,
        /// Bits of a quant: 4 or 8. The zero point is `2^(bits - 1)`.
        bits: u32,
        /// Columns without padding.
        cols: usize,
    },
}

/// Columns per scale, as in [`PackedMatrix::block`].
const BLOCK: usize = 32;

/// Elements that the default [`linear`](super::linear()) dequantises at a time (64 MiB), so that a large
/// output head is never dequantised as a whole.
const DENSE_CHUNK: usize = 1 << 24;

impl Weight {
    /// Packs a matrix for a device.
    ///
    /// # Errors
    /// As [`PackedMatrix::pack`] and [`Device::burn`].
    pub fn load(
        device: Device,
        format: WeightFormat,
        rows: usize,
        cols: usize,
        source: Source<'_>,
    ) -> Result<Self> {
        device.burn()?;
        Self::place(device, PackedMatrix::pack(format, rows, cols, source)?)
    }

    /// Places a packed matrix on a device.
    ///
    /// # Errors
    /// As [`Device::burn`].
    pub fn place(device: Device, packed: PackedMatrix) -> Result<Self> {
        let burn = device.burn()?;
        Ok(match device.resolved() {
            Device::Gpu => Self::upload(&packed, &burn),
            Device::Cpu | Device::NdArray | Device::Auto => Self::from(Arc::new(packed)),
        })
    }

    /// Copies a packed matrix into tensors of the device.
    pub(super) fn upload(packed: &PackedMatrix, device: &BurnDevice) -> Self {
        let (rows, cols, format) = (packed.rows(), packed.cols(), packed.format());
        let matrix = match format {
            WeightFormat::Q8 | WeightFormat::Ggml(GgmlType::Q8_0) => upload_packed(packed, 8, device),
            WeightFormat::Q4 | WeightFormat::Ggml(GgmlType::Q4_0) => upload_packed(packed, 4, device),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 | WeightFormat::Ggml(_) => {
                let ids: Vec<u32> = (0..rows as u32).collect();
                let dense = from_host(dequantize_rows(packed, &ids), [rows, cols], device);
                Matrix::Dense(dense.into_dispatch())
            }
        };
        Self { rows, cols, format, matrix, inputs: None }
    }

    /// Adds the squares of all further inputs to `inputs`, at some cost in speed. Results may differ within
    /// rounding, because operations that are fused otherwise run one after another.
    ///
    /// # Panics
    /// When the sums have another number of columns.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use lm_kernels::{Device, InputSums, Source, Weight, WeightFormat, from_host, linear};
    ///
    /// let weight = Weight::load(Device::Cpu, WeightFormat::F32, 1, 2, Source::F32(&[1.0, 1.0]))?;
    /// let inputs = Arc::new(InputSums::new(1, 2));
    /// let weight = weight.with_inputs(Arc::clone(&inputs));
    /// linear(from_host(vec![1.0, 2.0, 3.0, 4.0], [2, 2], &Device::Cpu.burn()?), &weight);
    /// assert_eq!((&inputs.matrices()[0].squares[..], inputs.matrices()[0].rows), (&[10.0, 20.0][..], 2));
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    #[must_use]
    pub fn with_inputs(self, inputs: Arc<InputSums>) -> Self {
        assert_eq!(inputs.cols(), self.cols, "the sums of a weight have its columns");
        Self { inputs: Some(inputs), ..self }
    }

    /// Sums of the inputs, if recorded.
    pub(super) fn inputs(&self) -> Option<&Arc<InputSums>> {
        self.inputs.as_ref()
    }

    /// Adds the squares of inputs, `[rows, cols]`, if they are recorded.
    pub(super) fn record(&self, x: &Tensor<2>) {
        if let Some(inputs) = &self.inputs {
            inputs.add(0, x);
        }
    }

    /// Number of rows: the outputs of a layer, or the entries of an embedding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the inputs of a layer, or the width of an embedding.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The format requested.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Bytes of the weight in device memory.
    pub fn bytes(&self) -> usize {
        let tensor = |elements: usize, dtype: DType| elements * dtype.size();
        match &self.matrix {
            Matrix::Host(packed) => packed.bytes(),
            Matrix::Dense(values) => tensor(self.rows * self.cols, values.dtype()),
            Matrix::Packed { scales, bits, .. } => {
                let blocks = self.rows * self.cols.div_ceil(BLOCK);
                blocks * BLOCK * *bits as usize / 8 + tensor(blocks, scales.dtype())
            }
        }
    }

    pub(super) fn matrix(&self) -> &Matrix<Dispatch> {
        &self.matrix
    }
}

impl From<Arc<PackedMatrix>> for Weight {
    /// A weight for the CPU devices.
    fn from(packed: Arc<PackedMatrix>) -> Self {
        let (rows, cols, format) = (packed.rows(), packed.cols(), packed.format());
        Self { rows, cols, format, matrix: Matrix::Host(packed), inputs: None }
    }
}

impl Clone for Matrix<Dispatch> {
    fn clone(&self) -> Self {
        match self {
            Matrix::Host(packed) => Matrix::Host(packed.clone()),
            Matrix::Dense(values) => Matrix::Dense(values.clone()),
            Matrix::Packed { words, scales, bits, cols } => {
                Matrix::Packed { words: words.clone(), scales: scales.clone(), bits: *bits, cols: *cols }
            }
        }
    }
}

impl Matrix<Dispatch> {
    /// Gathers rows by id as f32, on `device`.
    pub(super) fn select(self, ids: &[u32], device: &BurnDevice) -> Tensor<2> {
        let index = || {
            let ids: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
            Tensor::<1, Int>::from_data(ids.as_slice(), device)
        };
        match self {
            Matrix::Host(packed) => {
                from_host(dequantize_rows(&packed, ids), [ids.len(), packed.cols()], device)
            }
            Matrix::Dense(values) => Tensor::<2>::from_dispatch(values).select(0, index()),
            Matrix::Packed { words, scales, bits, cols } => {
                let words = Tensor::<2, Int>::from_dispatch(words).select(0, index());
                let scales = Tensor::<2>::from_dispatch(scales).select(0, index());
                unpack(words, scales, bits, cols)
            }
        }
    }
}

impl<B: Bridge> Matrix<B> {
    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Matrix::Host(packed) => packed.rows(),
            Matrix::Dense(values) => values.shape()[0],
            Matrix::Packed { words, .. } => words.shape()[0],
        }
    }

    /// Multiplies `x` by a range of the rows, transposed, in f32.
    pub(super) fn multiply_part(&self, rows: Range<usize>, x: Tensor<2>) -> Tensor<2> {
        let (start, len) = (rows.start, rows.len());
        match self {
            Matrix::Host(packed) => multiply_rows(packed, rows, x),
            Matrix::Dense(values) => x.matmul(B::lift::<2>(values.clone()).narrow(0, start, len).transpose()),
            Matrix::Packed { words, scales, bits, cols } => {
                let words = B::lower_int(B::lift_int::<2>(words.clone()).narrow(0, start, len));
                let scales = B::lower(B::lift::<2>(scales.clone()).narrow(0, start, len));
                Self::Packed { words, scales, bits: *bits, cols: *cols }.multiply(x)
            }
        }
    }

    /// Multiplies `x` by the transposed matrix in f32, a chunk of rows at a time.
    pub(super) fn multiply(self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Matrix::Host(packed) => multiply_rows(&packed, 0..packed.rows(), x),
            Matrix::Dense(values) => x.matmul(B::lift::<2>(values).transpose()),
            Matrix::Packed { words, scales, bits, cols } => {
                let words = B::lift_int::<2>(words).split((DENSE_CHUNK / cols).max(1), 0);
                let scales = B::lift::<2>(scales).split((DENSE_CHUNK / cols).max(1), 0);
                let chunks = words.into_iter().zip(scales);
                let outputs = chunks
                    .map(|(words, scales)| x.clone().matmul(unpack(words, scales, bits, cols).transpose()));
                Tensor::cat(outputs.collect(), 1)
            }
        }
    }
}

fn multiply_rows(packed: &PackedMatrix, rows: Range<usize>, x: Tensor<2>) -> Tensor<2> {
    let (shape, ids) = ([rows.len(), packed.cols()], rows.map(|row| row as u32).collect::<Vec<_>>());
    let dense = from_host(dequantize_rows(packed, &ids), shape, &x.device());
    x.matmul(dense.transpose())
}

fn dequantize_rows(packed: &PackedMatrix, ids: &[u32]) -> Vec<f32> {
    let mut values = vec![0.0; ids.len() * packed.cols()];
    for (&id, row) in ids.iter().zip(values.chunks_exact_mut(packed.cols().max(1))) {
        packed.dequantize_row(id as usize, row);
    }
    values
}

fn upload_packed(packed: &PackedMatrix, bits: u32, device: &BurnDevice) -> Matrix<Dispatch> {
    let (rows, blocks) = (packed.rows(), packed.cols().div_ceil(BLOCK));
    let per_word = 32 / bits as usize;
    let mut words = Vec::with_capacity(rows * blocks * BLOCK / per_word);
    let mut scales = Vec::with_capacity(rows * blocks);
    for row in 0..rows {
        for block in 0..blocks {
            let (scale, quants): (f32, [i8; BLOCK]) = packed.block(row, block);
            scales.push(scale);
            for group in quants.chunks_exact(per_word) {
                words.push(pack_word(group, bits));
            }
        }
    }
    let words = TensorData::new(words, [rows, blocks * BLOCK / per_word]);
    let scales = TensorData::new(scales, [rows, blocks]);
    Matrix::Packed {
        words: Tensor::<2, Int>::from_data(words, (device, DType::U32)).into_dispatch(),
        scales: Tensor::<2>::from_data(scales, (device, DType::F32)).into_dispatch(),
        bits,
        cols: packed.cols(),
    }
}

/// Packs quants with their zero point into one word, the first in the lowest bits.
fn pack_word(quants: &[i8], bits: u32) -> u32 {
    let offset = 1i32 << (bits - 1);
    quants.iter().rev().fold(0, |word, &quant| word << bits | (i32::from(quant) + offset) as u32)
}

/// Dequantises `words [rows, blocks * 32 * bits / 32]` and `scales [rows, blocks]` to `[rows, cols]`.
fn unpack(words: Tensor<2, Int>, scales: Tensor<2>, bits: u32, cols: usize) -> Tensor<2> {
    let [rows, num_words] = words.dims();
    let [_, blocks] = scales.dims();
    let mask = (1u32 << bits) - 1;
    let digits = (0..32 / bits).map(|digit| {
        let digit = words.clone().bitwise_right_shift_scalar(digit * bits).bitwise_and_scalar(mask);
        digit.float().reshape([rows, num_words, 1])
    });
    let quants = Tensor::cat(digits.collect(), 2) - (1u32 << (bits - 1)) as f32; // [rows, words, per word]
    let scales = scales.reshape([rows, blocks, 1]);
    let values = quants.reshape([rows, blocks, BLOCK]) * scales;
    values.reshape([rows, blocks * BLOCK]).narrow(1, 0, cols)
}
