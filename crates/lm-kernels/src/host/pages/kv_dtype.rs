//! Element types of a KV cache.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Element type of cached keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KvDtype {
    /// Half precision. The default: half the memory and memory traffic of f32, at an error far below that of
    /// 8-bit weights.
    #[default]
    F16,
    /// Single precision: no rounding.
    F32,
    /// 8-bit integers with a scale per head vector: half the memory of f16, and faster in long prompts, at a
    /// noticeable error. Queries are rounded to 8 bits, too.
    Q8,
}

impl KvDtype {
    /// Bytes of one element, without a scale.
    pub fn bytes(self) -> usize {
        match self {
            KvDtype::F16 => 2,
            KvDtype::F32 => 4,
            KvDtype::Q8 => 1,
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KvDtype::F16 => "f16",
            KvDtype::F32 => "f32",
            KvDtype::Q8 => "q8",
        })
    }
}

impl FromStr for KvDtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f16" => Ok(KvDtype::F16),
            "f32" => Ok(KvDtype::F32),
            "q8" => Ok(KvDtype::Q8),
            _ => Err(Error::UnknownName {
                what: "KV cache type",
                name: name.to_owned(),
                known: "f16, f32, q8",
            }),
        }
    }
}
