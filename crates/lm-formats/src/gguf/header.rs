//! Headers of new files.

use super::entries::text;
use super::{DEFAULT_ALIGNMENT, GgufEntries, GgufFile, GgufTensor, GgufTensorType};
use crate::{Error, Result};

/// GGUF version that is written.
const VERSION: u32 = 3;

/// Tensor of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufNewTensor {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub ty: GgufTensorType,
    /// Its shape, outermost dimension first.
    pub shape: Vec<usize>,
}

/// Header of a new GGUF file, and the positions of its tensors.
///
/// # Examples
/// ```
/// use lm_formats::{FileBytes, GgufEntries, GgufFile, GgufHeader, GgufNewTensor, GgufTensorType};
///
/// let ty = GgufTensorType::from_name("F32").expect("a type of GGUF");
/// let tensor = GgufNewTensor { name: "scale".to_owned(), ty, shape: vec![2] };
/// let GgufHeader { mut bytes, tensors, len } = GgufHeader::new(&GgufEntries::default(), &[tensor])?;
/// bytes.resize(tensors[0].range.start, 0);
/// bytes.extend([0.5_f32, 2.0].map(f32::to_le_bytes).concat());
/// assert_eq!(bytes.len(), len);
/// assert_eq!(GgufFile::read("model.gguf", FileBytes::Owned(bytes.into()))?.tensors(), tensors);
/// # Ok::<(), lm_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GgufHeader {
    /// Header of the file, padded to the position of the first tensor.
    pub bytes: Vec<u8>,
    /// Tensors in the given order, with their byte ranges in the file; the gaps between them are filled with
    /// zeros.
    pub tensors: Vec<GgufTensor>,
    /// Size of the whole file in bytes.
    pub len: usize,
}

impl GgufHeader {
    /// Builds the header of a file with these entries and tensors.
    ///
    /// # Errors
    /// [`Error::TensorShape`] when the elements of a tensor are not whole blocks of its type, or exceed
    /// `usize`.
    pub fn new(entries: &GgufEntries, tensors: &[GgufNewTensor]) -> Result<Self> {
        let mut bytes = GgufFile::MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((tensors.len() as u64).to_le_bytes());
        bytes.extend((entries.len() as u64).to_le_bytes());
        entries.encode(&mut bytes);
        let (mut placed, mut end) = (Vec::with_capacity(tensors.len()), 0_usize);
        for tensor in tensors {
            let start = end.next_multiple_of(DEFAULT_ALIGNMENT);
            tensor.encode(start, &mut bytes);
            end = start.checked_add(tensor.bytes()?).ok_or_else(|| tensor.wrong_shape())?;
            let GgufNewTensor { name, ty, shape } = tensor.clone();
            placed.push(GgufTensor { name, ty, shape, range: start..end });
        }
        let data = bytes.len().next_multiple_of(DEFAULT_ALIGNMENT);
        bytes.resize(data, 0);
        for GgufTensor { range, .. } in &mut placed {
            *range = data + range.start..data + range.end;
        }
        Ok(Self { bytes, tensors: placed, len: data + end })
    }
}

impl GgufNewTensor {
    /// Size in the file in bytes.
    fn bytes(&self) -> Result<usize> {
        let elements = self.shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        elements.and_then(|elements| self.ty.bytes(elements)).ok_or_else(|| self.wrong_shape())
    }

    fn wrong_shape(&self) -> Error {
        Error::TensorShape {
            file: "the file to be written".to_owned(),
            tensor: self.name.clone(),
            expected: vec![self.ty.block_len()],
            got: self.shape.clone(),
        }
    }

    /// Appends the tensor's header entry.
    fn encode(&self, offset: usize, out: &mut Vec<u8>) {
        text(out, &self.name);
        out.extend((self.shape.len() as u32).to_le_bytes());
        for &len in self.shape.iter().rev() {
            out.extend((len as u64).to_le_bytes());
        }
        out.extend(self.ty.id().to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileBytes, GgufEntry};

    fn tensor(name: &str, ty: &str, shape: &[usize]) -> GgufNewTensor {
        let ty = GgufTensorType::from_name(ty).unwrap();
        GgufNewTensor { name: name.to_owned(), ty, shape: shape.to_vec() }
    }

    #[test]
    fn header_round_trips() {
        let mut entries = GgufEntries::default();
        entries.put("general.architecture", GgufEntry::Text("llama".to_owned()));
        entries.put("sizes", GgufEntry::Sizes(vec![1, 2]));
        let tensors = [tensor("a", "F32", &[3]), tensor("b", "Q8_0", &[2, 3, 32])];
        let GgufHeader { bytes, tensors, len } = GgufHeader::new(&entries, &tensors).unwrap();
        let file = GgufFile::read_header("f.gguf", FileBytes::Owned(bytes.into()), len).unwrap();
        assert_eq!(file.tensors(), tensors);
        assert_eq!(file.tensors()[1].range.len(), 6 * 34);
        assert_eq!(file.metadata().architecture().unwrap(), "llama");
        assert_eq!(file.metadata().ints("sizes").unwrap().unwrap(), [1, 2]);
    }

    #[test]
    fn partial_blocks_and_too_many_elements_are_rejected() {
        for shape in [&[2, 31][..], &[usize::MAX, 2], &[usize::MAX / 32 * 32]] {
            let error = GgufHeader::new(&GgufEntries::default(), &[tensor("t", "Q8_0", shape)]).unwrap_err();
            assert!(matches!(error, Error::TensorShape { .. }), "{shape:?}: {error:?}");
        }
    }
}
