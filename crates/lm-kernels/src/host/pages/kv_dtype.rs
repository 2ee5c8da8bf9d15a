//! Element types of a KV cache.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, find_named};

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

    fn name(self) -> &'static str {
        match self {
            KvDtype::F16 => "f16",
            KvDtype::F32 => "f32",
            KvDtype::Q8 => "q8",
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KvDtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find_named("KV cache type", name, &[KvDtype::F16, KvDtype::F32, KvDtype::Q8], KvDtype::name)
    }
}
