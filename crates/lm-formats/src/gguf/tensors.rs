//! Tensors of a file: their header entries, and the positions of their bytes.

use std::collections::HashSet;
use std::ops::Range;

use super::reader::{Reader, check_count};
use super::{GgufProblem, GgufTensorType};

type Result<T> = std::result::Result<T, GgufProblem>;

/// Maximum number of dimensions.
const MAX_DIMS: u32 = 4;
/// Minimum size of a tensor's header entry in bytes: lengths, one dimension, type, offset.
const MIN_INFO_BYTES: usize = 8 + 4 + 8 + 4 + 8;
/// Far beyond any model: a mixture of experts that stores each expert separately has some 100,000.
const MAX_TENSORS: u64 = 1 << 20;

/// One tensor of a GGUF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name: `blk.0.attn_q.weight`.
    pub name: String,
    /// Its element type.
    pub ty: GgufTensorType,
    /// Its shape, `[rows, cols]` as everywhere in this crate. (Files store the dimensions in reverse.)
    pub shape: Vec<usize>,
    /// Byte range in the file.
    pub range: Range<usize>,
}

/// Header entry of a tensor.
pub(super) struct Info {
    name: String,
    ty: GgufTensorType,
    shape: Vec<usize>,
    bytes: usize,
    offset: u64,
}

/// Reads the header entries of all tensors.
pub(super) fn read_infos(reader: &mut Reader<'_>, count: u64) -> Result<Vec<Info>> {
    let count = check_count("tensors", count, MIN_INFO_BYTES, reader.left(), MAX_TENSORS)?;
    let mut infos = Vec::with_capacity(count);
    let mut names = HashSet::with_capacity(count);
    for _ in 0..count {
        let info = read_info(reader)?;
        if !names.insert(info.name.clone()) {
            return Err(GgufProblem::Repeated { what: "tensor", name: info.name });
        }
        infos.push(info);
    }
    Ok(infos)
}

fn read_info(reader: &mut Reader<'_>) -> Result<Info> {
    let name = reader.str("name of a tensor")?.to_owned();
    let num_dims = reader.u32("number of dimensions")?;
    if !(1..=MAX_DIMS).contains(&num_dims) {
        let (got, limit) = (num_dims.into(), MAX_DIMS.into());
        return Err(GgufProblem::TooMany { what: "dimensions of a tensor", got, limit });
    }
    let mut shape = Vec::new();
    for _ in 0..num_dims {
        shape.push(reader.u64("dimension of a tensor")?);
    }
    shape.reverse();
    let id = reader.u32("type of a tensor")?;
    let offset = reader.u64("offset of a tensor")?;
    let Some(ty) = GgufTensorType::from_id(id) else {
        return Err(GgufProblem::UnknownTensorType { tensor: name, id });
    };
    match checked_size(ty, &shape) {
        Some((shape, bytes)) => Ok(Info { name, ty, shape, bytes, offset }),
        None => {
            let block = ty.block_len();
            let expected =
                format!("no empty dimension, rows of whole blocks ({block} elements), a size in 64 bits");
            Err(GgufProblem::Shape { tensor: name, shape, expected })
        }
    }
}

/// Converts the shape to `usize` and computes the tensor's bytes; `None` if it is invalid.
fn checked_size(ty: GgufTensorType, shape: &[u64]) -> Option<(Vec<usize>, usize)> {
    let shape: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
    let cols = shape.last().filter(|_| !shape.contains(&0))?;
    let row_bytes = ty.bytes(*cols)?;
    // The number of elements must not overflow either, even where blocks make the bytes fewer.
    shape.iter().try_fold(1, |product: usize, &n| product.checked_mul(n))?;
    let bytes = shape[..shape.len() - 1].iter().try_fold(row_bytes, |bytes, &n| bytes.checked_mul(n))?;
    Some((shape, bytes))
}

/// Computes the tensors' byte ranges after the header, which ends at byte `end` of `file_len`; returns them
/// in the order of their offsets.
pub(super) fn place(
    infos: Vec<Info>,
    end: usize,
    alignment: usize,
    file_len: usize,
) -> Result<Vec<GgufTensor>> {
    // A file without tensors need not be padded to the start of the data.
    let data = end.next_multiple_of(alignment).min(file_len);
    let left = file_len - data;
    let mut tensors = Vec::with_capacity(infos.len());
    for info in infos {
        let Info { name, ty, shape, bytes, offset } = info;
        if !offset.is_multiple_of(alignment as u64) {
            return Err(GgufProblem::Misaligned { tensor: name, offset, alignment });
        }
        let start = usize::try_from(offset).ok().filter(|&start| start <= left && bytes <= left - start);
        let Some(start) = start else {
            return Err(GgufProblem::OutsideFile { tensor: name, offset, bytes, left });
        };
        tensors.push(GgufTensor { name, ty, shape, range: data + start..data + start + bytes });
    }
    tensors.sort_by_key(|tensor| tensor.range.start);
    match tensors.array_windows().find(|[first, second]| second.range.start < first.range.end) {
        Some([first, second]) => {
            Err(GgufProblem::Overlap { first: first.name.clone(), second: second.name.clone() })
        }
        None => Ok(tensors),
    }
}
