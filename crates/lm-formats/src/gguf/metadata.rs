//! Key-value metadata, read in place.

use std::collections::BTreeMap;
use std::fmt;

use super::GgufProblem;
use super::reader::{Reader, check_count};
use crate::{Error, FileBytes, Result};

/// Maximum number of keys in a file; real ones have some dozens.
const MAX_KEYS: u64 = 1 << 16;
/// Minimum size of a key-value entry in bytes: length, type, one byte.
const MIN_ENTRY_BYTES: usize = 8 + 4 + 1;
/// Maximum number of array elements; the largest vocabularies have some 300,000 entries, with twice as many merges.
const MAX_ELEMENTS: u64 = 1 << 24;
/// Maximum nesting of arrays. No key in use has nested arrays.
const MAX_DEPTH: usize = 4;

/// Key-value metadata of a GGUF file.
///
/// Values stay in place in the file; a getter reads one and checks its type. Integers may have any integer type, as writers do
/// not agree on one.
#[derive(Clone)]
pub struct GgufMetadata {
    file: String,
    bytes: FileBytes,
    entries: BTreeMap<String, ValueOffset>,
}

/// Position of a value: its type, and the offset after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueOffset {
    ty: GgufValueType,
    start: usize,
}

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

    fn read(reader: &mut Reader<'_>, key: &str) -> Result<Self, GgufProblem> {
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

/// Skips over all entries and records the position of each value.
pub(super) fn read_entries(
    reader: &mut Reader<'_>,
    count: u64,
) -> Result<BTreeMap<String, ValueOffset>, GgufProblem> {
    check_count("keys", count, MIN_ENTRY_BYTES, reader.left(), MAX_KEYS)?;
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        let key = reader.str("key")?.to_owned();
        let ty = GgufValueType::read(reader, &key)?;
        let offset = ValueOffset { ty, start: reader.position() };
        skip(reader, ty, &key, 0)?;
        if entries.contains_key(&key) {
            return Err(GgufProblem::Repeated { what: "key", name: key });
        }
        entries.insert(key, offset);
    }
    Ok(entries)
}

/// Skips one value.
fn skip(reader: &mut Reader<'_>, ty: GgufValueType, key: &str, depth: usize) -> Result<(), GgufProblem> {
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
            (0..count).try_for_each(|_| skip(reader, ty, key, depth + 1))
        }
        number => reader.bytes("value", number.min_bytes() as u64).map(drop),
    }
}

/// Reads the type and number of an array's elements; the count is checked against the remaining bytes.
fn read_array_head(reader: &mut Reader<'_>, key: &str) -> Result<(GgufValueType, usize), GgufProblem> {
    let ty = GgufValueType::read(reader, key)?;
    let count = reader.u64("length of an array")?;
    let count = check_count("elements of an array", count, ty.min_bytes(), reader.left(), MAX_ELEMENTS)?;
    Ok((ty, count))
}

/// Reads one value; `None` for an array.
fn read_single<'a>(reader: &mut Reader<'a>, ty: GgufValueType) -> Result<Option<GgufValue<'a>>, GgufProblem> {
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

impl GgufMetadata {
    pub(super) fn new(file: &str, bytes: FileBytes, entries: BTreeMap<String, ValueOffset>) -> Self {
        Self { file: file.to_owned(), bytes, entries }
    }

    /// Name of the file, as shown in errors.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Keys with the types of their values, sorted by key.
    pub fn keys(&self) -> impl Iterator<Item = (&str, GgufValueType)> {
        self.entries.iter().map(|(key, offset)| (key.as_str(), offset.ty))
    }

    /// Returns true if the key has a value.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Returns `general.architecture`, the prefix of the keys of the model's settings.
    ///
    /// # Errors
    /// When it is absent or not a string.
    pub fn architecture(&self) -> Result<&str> {
        self.required("general.architecture", Self::str)
    }

    /// Returns the value that `getter` finds under a required key.
    ///
    /// # Errors
    /// When the key is absent; also those of the getter.
    pub fn required<'a, T>(
        &'a self,
        key: &str,
        getter: impl FnOnce(&'a Self, &str) -> Result<Option<T>>,
    ) -> Result<T> {
        getter(self, key)?.ok_or_else(|| self.error(GgufProblem::MissingKey { key: key.to_owned() }))
    }

    /// Returns a string; `None` when the key is absent, as for all getters.
    ///
    /// # Errors
    /// When the value is of another type, or not UTF-8.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.single(key, "a string", |value| match value {
            GgufValue::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        })
    }

    /// Returns an integer as a size or an id.
    ///
    /// # Errors
    /// When the value has another type, is negative, or exceeds `usize`.
    pub fn size(&self, key: &str) -> Result<Option<usize>> {
        self.single(key, "an integer from 0 on", |value| match value {
            GgufValue::Int(number) => usize::try_from(number).ok(),
            _ => None,
        })
    }

    /// Returns a float, or an integer as one. It may be infinite or NaN.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn float(&self, key: &str) -> Result<Option<f64>> {
        self.single(key, "a float", |value| match value {
            GgufValue::Float(number) => Some(number),
            GgufValue::Int(number) => Some(number as f64),
            _ => None,
        })
    }

    /// Returns a bool.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.single(key, "a bool", |value| match value {
            GgufValue::Bool(truth) => Some(truth),
            _ => None,
        })
    }

    /// Returns any single value; `None` for an array too.
    ///
    /// # Errors
    /// None once the file has been read; errors of the reader are passed on.
    pub fn value(&self, key: &str) -> Result<Option<GgufValue<'_>>> {
        let Some(&ValueOffset { ty, start }) = self.entries.get(key) else { return Ok(None) };
        read_single(&mut Reader::at(&self.bytes, start), ty).map_err(|problem| self.error(problem))
    }

    /// Returns a value of any type as the bytes in the file, without the type id.
    ///
    /// # Errors
    /// None once the file has been read; errors of the reader are passed on.
    pub fn raw(&self, key: &str) -> Result<Option<(GgufValueType, &[u8])>> {
        let Some(&ValueOffset { ty, start }) = self.entries.get(key) else { return Ok(None) };
        let mut reader = Reader::at(&self.bytes, start);
        skip(&mut reader, ty, key, 0).map_err(|problem| self.error(problem))?;
        Ok(Some((ty, &self.bytes[start..reader.position()])))
    }

    /// Returns an array of strings.
    ///
    /// # Errors
    /// When the value is not an array of strings. (Invalid UTF-8 is reported by the iterator.)
    pub fn strings(&self, key: &str) -> Result<Option<GgufStrings<'_>>> {
        let Some((reader, ty, count)) = self.array(key)? else { return Ok(None) };
        if ty != GgufValueType::String {
            return Err(self.wrong_type(key, "an array of strings", ty));
        }
        Ok(Some(GgufStrings { metadata: self, reader, left: count }))
    }

    /// Returns an array of integers.
    ///
    /// # Errors
    /// When the value is not an array of integers, or an element exceeds 64 bits.
    pub fn ints(&self, key: &str) -> Result<Option<Vec<i64>>> {
        self.elements(key, "an array of integers", |value| match value {
            GgufValue::Int(number) => i64::try_from(number).ok(),
            _ => None,
        })
    }

    /// Returns an array of floats.
    ///
    /// # Errors
    /// When the value is not an array of floats.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>> {
        self.elements(key, "an array of floats", |value| match value {
            GgufValue::Float(number) => Some(number as f32),
            _ => None,
        })
    }

    /// Returns an array of bools.
    ///
    /// # Errors
    /// When the value is not an array of bools.
    pub fn bools(&self, key: &str) -> Result<Option<Vec<bool>>> {
        self.elements(key, "an array of bools", |value| match value {
            GgufValue::Bool(truth) => Some(truth),
            _ => None,
        })
    }

    /// Error for an invalid value.
    pub fn invalid(&self, key: &str, value: impl ToString, expected: impl Into<String>) -> Error {
        let (file, key) = (self.file.clone(), key.to_owned());
        Error::InvalidValue { file, key, value: value.to_string(), expected: expected.into() }
    }

    /// Error for a value that is not implemented.
    pub fn unsupported(&self, key: &str, value: impl ToString, known: impl Into<String>) -> Error {
        let (file, key) = (self.file.clone(), key.to_owned());
        Error::UnsupportedValue { file, key, value: value.to_string(), known: known.into() }
    }

    /// Returns an array: a reader at its first element, and the elements' type and number.
    fn array(&self, key: &str) -> Result<Option<(Reader<'_>, GgufValueType, usize)>> {
        let Some(&ValueOffset { ty, start }) = self.entries.get(key) else { return Ok(None) };
        if ty != GgufValueType::Array {
            return Err(self.wrong_type(key, "an array", ty));
        }
        let mut reader = Reader::at(&self.bytes, start);
        let (ty, count) = read_array_head(&mut reader, key).map_err(|problem| self.error(problem))?;
        Ok(Some((reader, ty, count)))
    }

    fn elements<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(GgufValue<'_>) -> Option<T>,
    ) -> Result<Option<Vec<T>>> {
        let Some((mut reader, ty, count)) = self.array(key)? else { return Ok(None) };
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            let value = read_single(&mut reader, ty).map_err(|problem| self.error(problem))?;
            elements.push(value.and_then(&convert).ok_or_else(|| self.wrong_type(key, expected, ty))?);
        }
        Ok(Some(elements))
    }

    fn single<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(GgufValue<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(offset) = self.entries.get(key) else { return Ok(None) };
        let converted = self.value(key)?.and_then(convert);
        converted.map(Some).ok_or_else(|| self.wrong_type(key, expected, offset.ty))
    }

    fn wrong_type(&self, key: &str, expected: &'static str, got: GgufValueType) -> Error {
        self.error(GgufProblem::KeyType { key: key.to_owned(), expected, got })
    }

    fn error(&self, problem: GgufProblem) -> Error {
        Error::Gguf { file: self.file.clone(), problem }
    }
}

impl fmt::Debug for GgufMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufMetadata").field("file", &self.file).field("entries", &self.entries).finish()
    }
}

/// Iterator over the strings of an array.
#[derive(Clone)]
pub struct GgufStrings<'a> {
    metadata: &'a GgufMetadata,
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for GgufStrings<'a> {
    type Item = Result<&'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.reader.str("text").map_err(|problem| self.metadata.error(problem)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for GgufStrings<'_> {}
