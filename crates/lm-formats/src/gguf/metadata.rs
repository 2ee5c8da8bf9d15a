//! Key-value metadata, read in place.

use std::collections::BTreeMap;
use std::fmt;

use super::GgufProblem;
use super::reader::{Reader, check_count};
use super::value::{GgufValue, GgufValueType, read_array_head, read_single, skip_value};
use crate::{Error, FileBytes, Result};

/// Maximum number of keys in a file; real ones have some dozens.
const MAX_KEYS: u64 = 1 << 16;
/// Minimum size of a key-value entry in bytes: length, type, one byte.
const MIN_ENTRY_BYTES: usize = 8 + 4 + 1;
/// Key-value metadata of a GGUF file.
///
/// Values stay in place in the file; a getter reads one and checks its type. Integers may have any integer
/// type, as writers do not agree on one.
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
        skip_value(reader, ty, &key, 0)?;
        if entries.contains_key(&key) {
            return Err(GgufProblem::Repeated { what: "key", name: key });
        }
        entries.insert(key, offset);
    }
    Ok(entries)
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

    /// Returns the value of a required key, read by `getter`.
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

    /// Special token id under `tokenizer.ggml.NAME_token_id`. `None` also for an id outside of the
    /// vocabulary, such as -1, by which programs write that there is none; see [`Self::unset_token_id`].
    ///
    /// # Errors
    /// When the value is not an integer.
    pub fn token_id(&self, name: &str) -> Result<Option<usize>> {
        let Some(id) = self.written_token_id(name)? else { return Ok(None) };
        let tokens = self.strings("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.left);
        Ok(usize::try_from(id).ok().filter(|id| *id < tokens))
    }

    /// Value of a special token id that is outside of the vocabulary, and so means none.
    ///
    /// # Errors
    /// When the value is not an integer.
    pub fn unset_token_id(&self, name: &str) -> Result<Option<i128>> {
        let is_unset = self.token_id(name)?.is_none();
        Ok(self.written_token_id(name)?.filter(|_| is_unset))
    }

    fn written_token_id(&self, name: &str) -> Result<Option<i128>> {
        self.single(&format!("tokenizer.ggml.{name}_token_id"), "an integer", |value| match value {
            GgufValue::Int(number) => Some(number),
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
    /// Errors of the reader; none once the file has been read.
    pub fn value(&self, key: &str) -> Result<Option<GgufValue<'_>>> {
        let Some(&ValueOffset { ty, start }) = self.entries.get(key) else { return Ok(None) };
        read_single(&mut Reader::at(&self.bytes, start), ty).map_err(|problem| self.error(problem))
    }

    /// Returns a value of any type as the bytes in the file, without the type id.
    ///
    /// # Errors
    /// Errors of the reader; none once the file has been read.
    pub fn raw(&self, key: &str) -> Result<Option<(GgufValueType, &[u8])>> {
        let Some(&ValueOffset { ty, start }) = self.entries.get(key) else { return Ok(None) };
        let mut reader = Reader::at(&self.bytes, start);
        skip_value(&mut reader, ty, key, 0).map_err(|problem| self.error(problem))?;
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
