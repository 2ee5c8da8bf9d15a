//! Encoding of key-value metadata.

use crate::gguf::GgufValueType;

/// Value to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    Size(u32),
    Int(i32),
    Float(f32),
    Bool(bool),
    Text(String),
    Sizes(Vec<u32>),
    Ints(Vec<i32>),
    Floats(Vec<f32>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
    /// Copied verbatim from another file.
    Copied(GgufValueType, Vec<u8>),
}

/// Key-value entries in the order of writing; keys are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entries(Vec<(String, Written)>);

impl Entries {
    /// Sets the value of a key.
    pub(crate) fn put(&mut self, key: impl Into<String>, value: Written) {
        let key = key.into();
        match self.0.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Sets all values of `others`.
    pub(crate) fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|(key, value)| self.put(key, value));
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends all entries as bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (key, value) in &self.0 {
            text(out, key);
            value.encode(out);
        }
    }
}

impl Written {
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
