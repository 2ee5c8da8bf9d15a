//! Metadata values: types, and how each is read.

use std::fmt;

use super::GgufProblem;
use super::reader::{Reader, check_count};

/// Maximum number of array elements; the largest vocabularies have some 300,000 entries, with twice as many
/// merges.
const MAX_ELEMENTS: u64 = 1 << 24;
/// Maximum nesting of arrays. No key in use has nested arrays.
const MAX_DEPTH: usize = 4;

/// Type of a value, by its GGUF id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GgufValueType {
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 32-bit integer.
    I32,
    /// 32-bit float.
    F32,
    /// Bool, one byte.
    Bool,
    /// String.
    String,
    /// Array of values of one type.
    Array,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 64-bit integer.
    I64,
    /// 64-bit float.
    F64,
}

/// Single metadata value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GgufValue<'a> {
    /// An integer of any width.
    Int(i128),
    /// A float of either width.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// The bytes of a string; getters check that it is UTF-8.
    Text(&'a [u8]),
}

impl GgufValueType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Reads the id of a type; `key` names the value in errors.
    pub(super) fn read(reader: &mut Reader<'_>, key: &str) -> Result<Self, GgufProblem> {
        let id = reader.u32("type of a value")?;
        let ty = usize::try_from(id).ok().and_then(|index| Self::ALL.get(index)).copied();
        ty.ok_or_else(|| GgufProblem::UnknownValueType { key: key.to_owned(), id })
    }

    /// Size of the value in bytes; of strings and arrays, of the type and length before the contents.
    fn min_bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

impl fmt::Display for GgufValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 | Self::I8 | Self::U16 | Self::I16 | Self::U32 | Self::I32 | Self::U64 | Self::I64 => {
                "an integer"
            }
            Self::F32 | Self::F64 => "a float",
            Self::Bool => "a bool",
            Self::String => "a string",
            Self::Array => "an array",
        })
    }
}

/// Skips one value, in `depth` arrays.
pub(super) fn skip_value(
    reader: &mut Reader<'_>,
    ty: GgufValueType,
    key: &str,
    depth: usize,
) -> Result<(), GgufProblem> {
    match ty {
        GgufValueType::String => reader.text("text").map(drop),
        GgufValueType::Array => {
            if depth == MAX_DEPTH {
                return Err(GgufProblem::TooDeep { key: key.to_owned(), limit: MAX_DEPTH });
            }
            let (ty, count) = read_array_head(reader, key)?;
            if !matches!(ty, GgufValueType::String | GgufValueType::Array) {
                return reader.bytes("array", (count * ty.min_bytes()) as u64).map(drop);
            }
            (0..count).try_for_each(|_| skip_value(reader, ty, key, depth + 1))
        }
        number => reader.bytes("value", number.min_bytes() as u64).map(drop),
    }
}

/// Reads the type and number of an array's elements; the count is checked against the remaining bytes.
pub(super) fn read_array_head(
    reader: &mut Reader<'_>,
    key: &str,
) -> Result<(GgufValueType, usize), GgufProblem> {
    let ty = GgufValueType::read(reader, key)?;
    let count = reader.u64("length of an array")?;
    let count = check_count("elements of an array", count, ty.min_bytes(), reader.left(), MAX_ELEMENTS)?;
    Ok((ty, count))
}

/// Reads one value; `None` for an array.
pub(super) fn read_single<'a>(
    reader: &mut Reader<'a>,
    ty: GgufValueType,
) -> Result<Option<GgufValue<'a>>, GgufProblem> {
    const WHAT: &str = "value";
    Ok(Some(match ty {
        GgufValueType::U8 => GgufValue::Int(u8::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::I8 => GgufValue::Int(i8::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::U16 => GgufValue::Int(u16::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::I16 => GgufValue::Int(i16::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::U32 => GgufValue::Int(u32::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::I32 => GgufValue::Int(i32::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::U64 => GgufValue::Int(u64::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::I64 => GgufValue::Int(i64::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::F32 => GgufValue::Float(f32::from_le_bytes(reader.array(WHAT)?).into()),
        GgufValueType::F64 => GgufValue::Float(f64::from_le_bytes(reader.array(WHAT)?)),
        GgufValueType::Bool => GgufValue::Bool(reader.array(WHAT)? != [0]),
        GgufValueType::String => GgufValue::Text(reader.text(WHAT)?),
        GgufValueType::Array => return Ok(None),
    }))
}
