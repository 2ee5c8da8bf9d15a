//! Sources of weights to be packed.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::super::lanes::{F32x16, LANES, Lanes, Line};
use super::dtype::FloatDtype;
use super::integer::GROUP;
use crate::error::{Error, Result};

/// Elements of a dense weight, row-major and borrowed.
///
/// # Examples
/// ```
/// use lm_kernels::{FloatDtype, Source};
/// let source = Source::from_le_bytes(FloatDtype::Bf16, &[0x80, 0x3f, 0x00, 0xc0])?;
/// let mut values = [0.0; 2];
/// source.read(0, &mut values);
/// assert_eq!(values, [1.0, -2.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// f32 elements.
    F32(&'a [f32]),
    /// f16 elements.
    F16(&'a [f16]),
    /// bf16 elements.
    Bf16(&'a [bf16]),
    /// Little-endian elements of a file, possibly unaligned. A partial element at the end is ignored;
    /// [`Source::from_le_bytes`] rejects it.
    LeBytes {
        /// Element type.
        dtype: FloatDtype,
        /// Bytes of the elements.
        bytes: &'a [u8],
    },
}

impl<'a> Source<'a> {
    /// Reads elements from the `bytes` of a file, which need no alignment.
    ///
    /// # Errors
    /// [`Error::PartialElement`] when the last one is incomplete.
    pub fn from_le_bytes(dtype: FloatDtype, bytes: &'a [u8]) -> Result<Self> {
        if !bytes.len().is_multiple_of(dtype.bytes()) {
            return Err(Error::PartialElement { dtype: dtype.name(), bytes: bytes.len() });
        }
        Ok(Source::LeBytes { dtype, bytes })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Source::F32(values) => values.len(),
            Source::F16(values) => values.len(),
            Source::Bf16(values) => values.len(),
            Source::LeBytes { dtype, bytes } => bytes.len() / dtype.bytes(),
        }
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element type.
    pub fn dtype(&self) -> FloatDtype {
        match self {
            Source::F32(_) => FloatDtype::F32,
            Source::F16(_) => FloatDtype::F16,
            Source::Bf16(_) => FloatDtype::Bf16,
            Source::LeBytes { dtype, .. } => *dtype,
        }
    }

    /// Fills `out` with the elements from `start` on, converted to f32 exactly.
    ///
    /// # Panics
    /// When there are fewer elements.
    pub fn read(&self, start: usize, out: &mut [f32]) {
        let range = start..start + out.len();
        match self {
            Source::F32(values) => out.copy_from_slice(&values[range]),
            Source::F16(values) => values[range].convert_to_f32_slice(out),
            Source::Bf16(values) => values[range].convert_to_f32_slice(out),
            Source::LeBytes { dtype, bytes } => {
                let bytes = &bytes[range.start * dtype.bytes()..range.end * dtype.bytes()];
                match dtype {
                    FloatDtype::F32 => widen(bytes, out, f32::from_le_bytes),
                    FloatDtype::F16 => widen(bytes, out, |bytes| f16::from_le_bytes(bytes).to_f32()),
                    FloatDtype::Bf16 => widen(bytes, out, |bytes| bf16::from_le_bytes(bytes).to_f32()),
                }
            }
        }
    }

    /// Gathers 32 columns of 16 rows of a matrix `[rows, cols]`, transposed; zeros outside of it.
    #[inline(always)]
    pub(super) fn gather<V: Lanes>(
        &self,
        rows: usize,
        cols: usize,
        first_row: usize,
        first_col: usize,
        out: &mut [F32x16; GROUP],
    ) {
        if first_row + LANES <= rows
            && first_col + GROUP <= cols
            && self.gather_words::<V>(cols, first_row * cols + first_col, out)
        {
            return;
        }
        *out = [F32x16::ZERO; GROUP];
        let width = GROUP.min(cols - first_col);
        for lane in 0..LANES.min(rows - first_row) {
            let mut row = [0.0; GROUP];
            self.read((first_row + lane) * cols + first_col, &mut row[..width]);
            for (column, value) in out.iter_mut().zip(row) {
                column.0[lane] = value;
            }
        }
    }

    /// Gathers the same from element `start` on, for 16 full-width rows in a file. Returns false if the
    /// source is not a file.
    #[inline(always)]
    fn gather_words<V: Lanes>(&self, cols: usize, start: usize, out: &mut [F32x16; GROUP]) -> bool {
        let Source::LeBytes { dtype, bytes } = self else { return false };
        let (start, stride) = (start * dtype.bytes(), cols * dtype.bytes());
        match dtype {
            FloatDtype::F32 => {
                for (half, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                    let words = V::transpose(lines(bytes, start + half * size_of::<Line>(), stride));
                    for (words, out) in words.iter().zip(out) {
                        for (word, out) in words.iter().zip(&mut out.0) {
                            *out = f32::from_bits(*word);
                        }
                    }
                }
            }
            FloatDtype::F16 => pairs::<V>(lines(bytes, start, stride), out, V::load_f16),
            FloatDtype::Bf16 => pairs::<V>(lines(bytes, start, stride), out, V::load_bf16),
        }
        true
    }

    /// Gathers the bits of 32 columns of 16 rows, transposed, from element `start` of a matrix of `cols`
    /// columns in a file.
    ///
    /// # Panics
    /// When the elements do not have 16 bits or are not in a file.
    #[inline(always)]
    pub(super) fn gather_bits<V: Lanes>(&self, cols: usize, start: usize, out: &mut [[u16; LANES]; GROUP]) {
        let Source::LeBytes { dtype: FloatDtype::F16 | FloatDtype::Bf16, bytes } = self else {
            panic!("{:?} elements in memory have no bits to be copied", self.dtype())
        };
        let words = V::transpose(lines(bytes, start * size_of::<u16>(), cols * size_of::<u16>()));
        for (words, out) in words.iter().zip(out.as_chunks_mut::<2>().0) {
            *out = V::halves(words);
        }
    }
}

/// Sixteen lines, `stride` bytes apart. (A loop: code not inlined here is compiled without the target
/// features.)
#[inline(always)]
pub(super) fn lines(bytes: &[u8], start: usize, stride: usize) -> [&Line; LANES] {
    let mut lines = [&[0; size_of::<Line>()]; LANES];
    for (row, line) in lines.iter_mut().enumerate() {
        *line = bytes[start + row * stride..].first_chunk().expect("a row is as long");
    }
    lines
}

/// Transposes and converts columns of 16-bit elements, two to a word.
#[inline(always)]
fn pairs<V: Lanes>(lines: [&Line; LANES], out: &mut [F32x16; GROUP], load: impl Fn(&[u16; LANES]) -> V) {
    for (words, out) in V::transpose(lines).iter().zip(out.as_chunks_mut::<2>().0) {
        let [low, high] = V::halves(words);
        load(&low).store(&mut out[0].0);
        load(&high).store(&mut out[1].0);
    }
}

fn widen<const N: usize>(bytes: &[u8], out: &mut [f32], convert: impl Fn([u8; N]) -> f32) {
    for (bytes, out) in bytes.as_chunks::<N>().0.iter().zip(out) {
        *out = convert(*bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_read_equal_in_every_form() {
        let singles = [1.0_f32, -0.5, 3.0, 100.0];
        let halves = singles.map(f16::from_f32);
        let brains = singles.map(bf16::from_f32);
        let file = |bytes: Vec<u8>| [vec![0], bytes].concat(); // one byte in front: unaligned
        let files = [
            (FloatDtype::F32, file(singles.iter().flat_map(|x| x.to_le_bytes()).collect())),
            (FloatDtype::F16, file(halves.iter().flat_map(|x| x.to_le_bytes()).collect())),
            (FloatDtype::Bf16, file(brains.iter().flat_map(|x| x.to_le_bytes()).collect())),
        ];
        let mut sources = vec![Source::F32(&singles), Source::F16(&halves), Source::Bf16(&brains)];
        sources
            .extend(files.iter().map(|(dtype, bytes)| Source::from_le_bytes(*dtype, &bytes[1..]).unwrap()));
        for source in sources {
            let mut out = [0.0; 3];
            source.read(1, &mut out);
            assert_eq!((source.len(), out), (4, [-0.5, 3.0, 100.0]), "{source:?}");
        }
    }

    #[test]
    fn partial_element_is_rejected() {
        let error = Source::from_le_bytes(FloatDtype::F32, &[0; 7]).unwrap_err();
        assert_eq!(error.to_string(), "7 bytes are not a whole number of f32 elements");
    }
}
