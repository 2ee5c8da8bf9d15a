//! Encoding of key-value metadata.

use super::GgufValueType;

/// Metadata value of a new file.
#[derive(Clone, Debug, PartialEq)]
pub enum GgufEntry {
    /// An unsigned 32-bit integer.
    Size(u32),
    /// A signed 32-bit integer.
    Int(i32),
    /// A 32-bit float.
    Float(f32),
    /// A bool.
    Bool(bool),
    /// A string.
    Text(String),
    /// An array of unsigned 32-bit integers.
    Sizes(Vec<u32>),
    /// An array of signed 32-bit integers.
    Ints(Vec<i32>),
    /// An array of 32-bit floats.
    Floats(Vec<f32>),
    /// An array of bools.
    Bools(Vec<bool>),
    /// An array of strings.
    Texts(Vec<String>),
    /// Bytes of a value in another file: [`GgufMetadata::raw`](crate::GgufMetadata::raw).
    Copied(GgufValueType, Vec<u8>),
}

/// Metadata of a new file in the order of writing; keys are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GgufEntries(Vec<(String, GgufEntry)>);

impl GgufEntries {
    /// Sets the value of a key.
    pub fn put(&mut self, key: impl Into<String>, value: GgufEntry) {
        let key = key.into();
        match self.0.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|entry| entry.0 != key);
    }

    /// Sets all values of `others`.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|(key, value)| self.put(key, value));
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true without keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends all entries as bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (key, value) in &self.0 {
            text(out, key);
            value.encode(out);
        }
    }
}

impl GgufEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        use GgufValueType as Type;
        match self {
            Self::Size(number) => single(out, Type::U32, &number.to_le_bytes()),
            Self::Int(number) => single(out, Type::I32, &number.to_le_bytes()),
            Self::Float(number) => single(out, Type::F32, &number.to_le_bytes()),
            Self::Bool(truth) => single(out, Type::Bool, &[u8::from(*truth)]),
            Self::Text(string) => {
                single(out, Type::String, &[]);
                text(out, string);
            }
            Self::Sizes(list) => array(out, Type::U32, list, |out, n| out.extend(n.to_le_bytes())),
            Self::Ints(list) => array(out, Type::I32, list, |out, n| out.extend(n.to_le_bytes())),
            Self::Floats(list) => array(out, Type::F32, list, |out, n| out.extend(n.to_le_bytes())),
            Self::Bools(list) => array(out, Type::Bool, list, |out, truth| out.push(u8::from(*truth))),
            Self::Copied(ty, bytes) => single(out, *ty, bytes),
            Self::Texts(list) => array(out, Type::String, list, |out, string| text(out, string)),
        }
    }
}

fn single(out: &mut Vec<u8>, ty: GgufValueType, bytes: &[u8]) {
    out.extend((ty as u32).to_le_bytes());
    out.extend(bytes);
}

fn array<T>(out: &mut Vec<u8>, ty: GgufValueType, list: &[T], element: impl Fn(&mut Vec<u8>, &T)) {
    single(out, GgufValueType::Array, &(ty as u32).to_le_bytes());
    out.extend((list.len() as u64).to_le_bytes());
    list.iter().for_each(|value| element(out, value));
}

/// Writes a length-prefixed string.
pub(super) fn text(out: &mut Vec<u8>, string: &str) {
    out.extend((string.len() as u64).to_le_bytes());
    out.extend(string.as_bytes());
}
