//! Metadata under the architecture's own name, and tensors, of a model's files.

use std::cell::RefCell;
use std::collections::BTreeSet;

use lm_formats::{Error, GgufMetadata, GgufShard, GgufTensor, GgufValue, Result};
use lm_kernels::Source;
use serde_json::{Number, Value};

use super::{FILE_TYPE, MODEL};
use crate::checkpoint::TensorType;

/// Metadata and tensors of a model. Keys are written without the architecture prefix.
pub(crate) struct Description<'a> {
    pub(crate) metadata: &'a GgufMetadata,
    pub(crate) shards: &'a [GgufShard],
    /// `general.architecture`.
    pub(crate) architecture: &'a str,
    /// Keys and tensors that have been read.
    read: RefCell<BTreeSet<String>>,
}

/// Maximum length of a vector that is read as metadata.
const MAX_VECTOR: usize = 1 << 16;

impl<'a> Description<'a> {
    pub(crate) fn new(metadata: &'a GgufMetadata, shards: &'a [GgufShard]) -> Result<Self> {
        if let Some(other) = metadata.str(FILE_TYPE)?.filter(|ty| *ty != MODEL) {
            return Err(metadata.unsupported(FILE_TYPE, other, MODEL));
        }
        Ok(Self { metadata, shards, architecture: metadata.architecture()?, read: RefCell::default() })
    }
}

impl Description<'_> {
    /// Returns the key with the architecture prefix.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// Returns the full key and marks it as read.
    fn reading(&self, key: &str) -> String {
        let key = self.key(key);
        self.read.borrow_mut().insert(key.clone());
        key
    }

    /// Returns true if the key has a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.metadata.contains(&self.key(key))
    }

    /// Returns true if a full key, or a tensor that holds metadata, has been read.
    pub(crate) fn was_read(&self, name: &str) -> bool {
        self.read.borrow().contains(name)
    }

    pub(crate) fn size(&self, key: &str) -> Result<Option<usize>> {
        self.metadata.size(&self.reading(key))
    }

    pub(crate) fn required_size(&self, key: &str) -> Result<usize> {
        self.metadata.required(&self.reading(key), GgufMetadata::size)
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.metadata.bool(&self.reading(key))
    }

    pub(crate) fn float(&self, key: &str) -> Result<Option<f64>> {
        self.metadata.float(&self.reading(key))
    }

    pub(crate) fn floats(&self, key: &str) -> Result<Option<Vec<f32>>> {
        self.metadata.floats(&self.reading(key))
    }

    pub(crate) fn str(&self, key: &str) -> Result<Option<&str>> {
        self.metadata.str(&self.reading(key))
    }

    /// Returns a size for each layer, if the key holds a list.
    pub(crate) fn sizes(&self, key: &str) -> Result<Option<Vec<usize>>> {
        let key = self.reading(key);
        if !self.is_list(&key)? {
            return Ok(None);
        }
        let size = |n| usize::try_from(n).map_err(|_| self.metadata.invalid(&key, n, "sizes from 0 on"));
        Ok(Some(self.metadata.ints(&key)?.unwrap_or_default().into_iter().map(size).collect::<Result<_>>()?))
    }

    /// Returns a size for each layer: the elements of a list, or one size for all.
    pub(crate) fn sizes_of_layers(&self, key: &str) -> Result<Vec<usize>> {
        match self.sizes(key)? {
            Some(sizes) => self.of_layers(key, sizes),
            None => Ok(vec![self.required_size(key)?; self.num_layers()?]),
        }
    }

    /// Returns a bool for each layer, if the key holds a list.
    pub(crate) fn flags(&self, key: &str) -> Result<Option<Vec<bool>>> {
        if !self.is_list(&self.reading(key))? {
            return Ok(None);
        }
        let flags = self.metadata.bools(&self.key(key))?.unwrap_or_default();
        self.of_layers(key, flags).map(Some)
    }

    fn is_list(&self, key: &str) -> Result<bool> {
        Ok(self.metadata.contains(key) && self.metadata.value(key)?.is_none())
    }

    /// Drops the values of multi-token-prediction layers.
    fn of_layers<T>(&self, key: &str, mut values: Vec<T>) -> Result<Vec<T>> {
        let (all, layers) = (self.required_size("block_count")?, self.num_layers()?);
        if values.len() != all {
            let (got, expected) =
                (format!("a list of {}", values.len()), format!("one for each of the {all} layers"));
            return Err(self.metadata.invalid(&self.key(key), got, expected));
        }
        values.truncate(layers);
        Ok(values)
    }

    /// Returns a value in the form of config.json; a list of equal sizes becomes one size.
    pub(crate) fn json(&self, key: &str) -> Result<Option<Value>> {
        if let Some(sizes) = self.sizes(key)? {
            let one = sizes.first().filter(|first| sizes.iter().all(|size| size == *first));
            return Ok(Some(one.map_or_else(|| sizes.clone().into(), |&size| size.into())));
        }
        let key = self.key(key);
        let invalid = |value: String| self.metadata.invalid(&key, value, "a number, a bool or a text");
        Ok(Some(match self.metadata.value(&key)? {
            None => return Ok(None),
            Some(GgufValue::Bool(truth)) => truth.into(),
            Some(GgufValue::Text(_)) => self.metadata.str(&key)?.into(),
            Some(GgufValue::Int(number)) => {
                Number::from_i128(number).ok_or_else(|| invalid(number.to_string()))?.into()
            }
            Some(GgufValue::Float(number)) => {
                decimal(number).ok_or_else(|| invalid(number.to_string()))?.into()
            }
        }))
    }

    /// Finds a tensor in any shard.
    pub(crate) fn tensor(&self, name: &str) -> Option<(&GgufShard, &GgufTensor)> {
        let find = |shard: &GgufShard| shard.file.tensors().iter().position(|tensor| tensor.name == name);
        self.shards.iter().find_map(|shard| Some((shard, &shard.file.tensors()[find(shard)?])))
    }

    /// Returns the values of a tensor that holds metadata: a short vector of floats.
    pub(crate) fn vector(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let Some((shard, tensor)) = self.tensor(name) else { return Ok(None) };
        self.read.borrow_mut().insert(name.to_owned());
        let dtype = TensorType::of_gguf(tensor.ty).float().ok_or_else(|| Error::TensorDtype {
            file: shard.name.clone(),
            tensor: name.to_owned(),
            got: tensor.ty.to_string(),
            supported: "F32, F16, BF16".to_owned(),
        })?;
        if tensor.shape.len() != 1 || tensor.shape[0] > MAX_VECTOR {
            let (file, tensor, got) = (shard.name.clone(), name.to_owned(), tensor.shape.clone());
            return Err(Error::TensorShape {
                file,
                tensor,
                expected: vec![got.iter().product::<usize>().min(MAX_VECTOR)],
                got,
            });
        }
        let mut values = vec![0.0; tensor.shape[0]];
        Source::from_le_bytes(dtype, &shard.bytes[tensor.range.clone()])?.read(0, &mut values);
        Ok(Some(values))
    }

    /// Width of a head: `attention.key_length`, or the embedding width divided by the number of heads.
    pub(crate) fn head_dim(&self) -> Result<usize> {
        if let Some(head_dim) = self.size("attention.key_length")? {
            return Ok(head_dim);
        }
        let (width, heads) =
            (self.required_size("embedding_length")?, self.required_size("attention.head_count")?);
        if heads == 0 || !width.is_multiple_of(heads) {
            let expected = format!("a divisor of {} = {width}", self.key("embedding_length"));
            return Err(self.metadata.invalid(&self.key("attention.head_count"), heads, expected));
        }
        Ok(width / heads)
    }

    /// Number of layers, without multi-token-prediction layers.
    pub(crate) fn num_layers(&self) -> Result<usize> {
        const MAX_LAYERS: usize = 4096;
        let (all, extra) =
            (self.required_size("block_count")?, self.size("nextn_predict_layers")?.unwrap_or(0));
        match all.checked_sub(extra) {
            Some(layers @ 1..=MAX_LAYERS) => Ok(layers),
            _ => {
                Err(self.metadata.invalid(&self.key("block_count"), all, format!("1 to {MAX_LAYERS} layers")))
            }
        }
    }
}

/// Returns the shortest decimal number of an f32 as an f64, as config.json has it; `None` if it is not
/// finite.
pub(crate) fn decimal(number: f64) -> Option<Number> {
    let narrow = number as f32;
    let number = if f64::from(narrow) == number { narrow.to_string().parse().ok()? } else { number };
    Number::from_f64(number)
}
