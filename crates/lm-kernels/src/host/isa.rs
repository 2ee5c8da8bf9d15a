//! Instruction sets of the kernels, by name.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, find_named};

/// An instruction set that kernels are compiled for.
///
/// Every kernel is bit-identical on each of them: sums have a fixed order, written in the kernel, and a
/// multiply-add rounds once everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// The baseline of the compilation target. The reference; slow on x86-64 without fused multiply-add.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// The same with AVX-VNNI, which Intel's client processors have without AVX-512. A processor with AVX-512
    /// VNNI but without AVX-VNNI runs its instructions in their AVX-512 encoding, if `LM_CPU` requests this
    /// path.
    AvxVnni,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI.
    Avx512,
    /// The same with AMX tiles of 8-bit integers, for many rows of quantised weights.
    Amx,
    /// AArch64 with NEON, which every such processor has.
    Neon,
    /// The same with dot products of bytes (`FEAT_DotProd`), as in Cortex-A76, Neoverse N1 and Apple M1.
    Dotprod,
    /// The same with matrix products of bytes (`FEAT_I8MM`), as in Neoverse V1 and Apple M2.
    I8mm,
}

/// Names of all instruction sets, of any target.
pub(super) const NAMES: [(Isa, &str); 8] = [
    (Isa::Scalar, "scalar"),
    (Isa::Avx2, "avx2"),
    (Isa::AvxVnni, "avxvnni"),
    (Isa::Avx512, "avx512"),
    (Isa::Amx, "amx"),
    (Isa::Neon, "neon"),
    (Isa::Dotprod, "dotprod"),
    (Isa::I8mm, "i8mm"),
];

impl Isa {
    /// Name, which [`FromStr`] and `LM_CPU` read.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(isa, _)| *isa == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find_named("instruction set", name, &NAMES.map(|(isa, _)| isa), Isa::name)
    }
}
