//! Writer of GGUF metadata for tests, including metadata that no tool would write.

use std::io::Write;

use lm_formats::{FileBytes, GgufFile, GgufMetadata};
use lm_tokenizer::{Result, Tokenizer};

/// A value of the metadata.
#[derive(Clone, Debug)]
pub enum Value {
    U32(u32),
    Bool(bool),
    Text(String),
    Ints(Vec<i32>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(texts: [&str; N]) -> Self {
        Self::Texts(texts.map(str::to_owned).into())
    }
}

/// Keys and values; setting a key again replaces its value.
#[derive(Clone, Debug, Default)]
pub struct Metadata(Vec<(String, Value)>);

impl Metadata {
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self = self.without(key);
        self.0.push((key.to_owned(), value.into()));
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.0.retain(|(other, _)| other != key);
        self
    }

    pub fn read(&self) -> GgufMetadata {
        let file = GgufFile::read("test.gguf", FileBytes::Owned(self.bytes().into()));
        file.expect("what is written can be read").metadata().clone()
    }

    pub fn tokenizer(&self) -> Result<Tokenizer> {
        Tokenizer::from_gguf(&self.read())
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec(); // version 3, no tensors
        out.extend((self.0.len() as u64).to_le_bytes());
        for (key, value) in &self.0 {
            text(&mut out, key);
            value.write(&mut out);
        }
        out
    }
}

impl Value {
    fn write(&self, out: &mut Vec<u8>) {
        let array = |out: &mut Vec<u8>, ty: u32, len: usize| {
            out.extend([9_u32, ty].map(u32::to_le_bytes).concat());
            out.extend((len as u64).to_le_bytes());
        };
        match self {
            Self::U32(number) => out.extend([4, *number].map(u32::to_le_bytes).concat()),
            Self::Bool(truth) => {
                out.extend(7_u32.to_le_bytes());
                out.push(u8::from(*truth));
            }
            Self::Text(value) => {
                out.extend(8_u32.to_le_bytes());
                text(out, value);
            }
            Self::Ints(numbers) => {
                array(out, 5, numbers.len());
                out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
            Self::Floats(numbers) => {
                array(out, 6, numbers.len());
                out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
            Self::Texts(texts) => {
                array(out, 8, texts.len());
                texts.iter().for_each(|value| text(out, value));
            }
        }
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    out.extend((value.len() as u64).to_le_bytes());
    out.write_all(value.as_bytes()).expect("memory can be written");
}
