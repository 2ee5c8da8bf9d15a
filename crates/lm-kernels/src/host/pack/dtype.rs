//! Float types.

use std::fmt;

/// Float types of checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatDtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16, the upper half of a single.
    Bf16,
}

impl FloatDtype {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            FloatDtype::F32 => 4,
            FloatDtype::F16 | FloatDtype::Bf16 => 2,
        }
    }

    /// Name: `f32`, `f16` or `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            FloatDtype::F32 => "f32",
            FloatDtype::F16 => "f16",
            FloatDtype::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for FloatDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
