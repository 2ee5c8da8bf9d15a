//! The tensors of a file: their descriptions, and where their bytes are.

use std::collections::HashSet;
use std::ops::Range;

use super::reader::{Reader, check_count};
use super::{GgufProblem, GgufTensorType};

type Result<T> = std::result::Result<T, GgufProblem>;

/// Most dimensions of a tensor.
const MAX_DIMS: u32 = 4;
/// Bytes that the shortest description takes: lengths, one dimension, type, offset.
const LEAST_INFO_BYTES: usize = 8 + 4 + 8 + 4 + 8;
/// Far beyond any model: a mixture of experts with each expert on its own has some 100,000.
const MAX_TENSORS: u64 = 1 << 20;

/// One tensor of a GGUF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name: `blk.0.attn_q.weight`.
    pub name: String,
    /// Its element type.
    pub ty: GgufTensorType,
    /// Its shape as every other part of this crate writes it, `[rows, cols]`. (Files write it the other way round.)
    pub shape: Vec<usize>,
    /// Where its bytes are in the file.
    pub range: Range<usize>,
}

/// A tensor as the file describes it.
pub(super) struct Info {
    name: String,
    ty: GgufTensorType,
    shape: Vec<usize>,
    bytes: usize,
    offset: u64,
}

/// Reads the descriptions of all tensors.
pub(super) fn read_infos(reader: &mut Reader<'_>, count: u64) -> Result<Vec<Info>> {
    let count = check_count("tensors", count, LEAST_INFO_BYTES, reader.left(), MAX_TENSORS)?;
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

/// The shape in the machine's own sizes, and the tensor's bytes.
fn checked_size(ty: GgufTensorType, shape: &[u64]) -> Option<(Vec<usize>, usize)> {
    let shape: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
    let cols = shape.last().filter(|_| !shape.contains(&0))?;
    let row_bytes = ty.bytes(*cols)?;
    // No number of elements overflows either, even where blocks make the bytes fewer.
    shape.iter().try_fold(1, |product: usize, &n| product.checked_mul(n))?;
    let bytes = shape[..shape.len() - 1].iter().try_fold(row_bytes, |bytes, &n| bytes.checked_mul(n))?;
    Some((shape, bytes))
}

/// Places the tensors behind the descriptions, which end at byte `end` of `file_len`; returns them in the order of their bytes.
pub(super) fn place(
    infos: Vec<Info>,
    end: usize,
    alignment: usize,
    file_len: usize,
) -> Result<Vec<GgufTensor>> {
    // A file without tensors need not be filled up to the place where they would begin.
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
