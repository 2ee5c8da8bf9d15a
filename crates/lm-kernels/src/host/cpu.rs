//! Instruction sets of the kernels and their dispatch at run time.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512, Evex, Vex, Vnni};
#[cfg(target_arch = "aarch64")]
use super::lanes::{Baseline, ByteProducts, Dotprod, I8mm, Neon};
use super::lanes::{F32x16, Lanes};
#[cfg(target_arch = "aarch64")]
use super::matrix_unit::Usmmla;
#[cfg(target_arch = "x86_64")]
use super::matrix_unit::{Amx, MatrixUnit, NoMatrixUnit};
use crate::{Error, Result};

/// The environment variable that forces an [`Isa`].
const VARIABLE: &str = "LM_CPU";

/// True once [`Isa::current`] has found a processor that [prefetches far](prefetches_far).
static FAR_PREFETCH: AtomicBool = AtomicBool::new(false);

/// Returns true if products of one row read their weights faster with software prefetches 4 and 12 KiB ahead, as Intel's processors do; others have near
/// ones. One row of 4-bit weights from memory: Xeon with AMX 18 to 21 GB/s far, 11 to 12 near; EPYC (Zen 4) 35 to 39 far, 41 to 53 near.
#[inline(always)]
pub(super) fn prefetches_far() -> bool {
    FAR_PREFETCH.load(Ordering::Relaxed)
}

fn is_intel() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let leaf = std::arch::x86_64::__cpuid(0);
        [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

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
    /// The same with AVX-VNNI, which Intel's client processors have without AVX-512. A processor with AVX-512 VNNI but without
    /// AVX-VNNI runs its instructions in their AVX-512 encoding, if `LM_CPU` requests this path.
    AvxVnni,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI.
    Avx512,
    /// The same with AMX tiles of 8-bit integers, for many rows of quantised weights.
    Amx,
    /// AArch64 with NEON, which is always there.
    Neon,
    /// The same with dot products of bytes (`FEAT_DotProd`), as in Cortex-A76, Neoverse N1 and Apple M1.
    Dotprod,
    /// The same with matrix products of bytes (`FEAT_I8MM`), as in Neoverse V1 and Apple M2.
    I8mm,
}

/// Names of all instruction sets, of any target.
const NAMES: [(Isa, &str); 8] = [
    (Isa::Scalar, "scalar"),
    (Isa::Avx2, "avx2"),
    (Isa::AvxVnni, "avxvnni"),
    (Isa::Avx512, "avx512"),
    (Isa::Amx, "amx"),
    (Isa::Neon, "neon"),
    (Isa::Dotprod, "dotprod"),
    (Isa::I8mm, "i8mm"),
];

/// Instruction sets of the compilation target, narrowest first.
const ALL: &[Isa] = if cfg!(target_arch = "x86_64") {
    &[Isa::Scalar, Isa::Avx2, Isa::AvxVnni, Isa::Avx512, Isa::Amx]
} else if cfg!(target_arch = "aarch64") {
    &[Isa::Scalar, Isa::Neon, Isa::Dotprod, Isa::I8mm]
} else {
    &[Isa::Scalar]
};

impl Isa {
    /// Returns the instruction set in use: the widest this processor has, or the one that `LM_CPU`
    /// (`scalar`, `avx2`, `avxvnni`, `avx512`, `amx`, `neon`, `dotprod`, `i8mm`) forces.
    ///
    /// Read once, by the first kernel that runs.
    ///
    /// # Panics
    /// When `LM_CPU` names no instruction set or one that this processor lacks; there is no fallback.
    /// [`Isa::requested`] returns the error, and so does every function that opens a device (`Device::burn`,
    /// `Weight`, `KvPool`) or packs a matrix (`Packing::new`).
    pub fn current() -> Isa {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            FAR_PREFETCH.store(is_intel(), Ordering::Relaxed);
            match Isa::requested() {
                Ok(requested) => requested.unwrap_or_else(Isa::best),
                Err(error) => panic!("{error}"),
            }
        })
    }

    /// Returns the instruction set that `LM_CPU` requests, if it is set and not empty.
    ///
    /// # Errors
    /// [`Error::UnknownName`] for an unknown name, [`Error::UnsupportedIsa`] for one this processor lacks.
    pub fn requested() -> Result<Option<Isa>> {
        let name = env::var_os(VARIABLE).filter(|name| !name.is_empty());
        name.map(|name| Isa::among(&name.to_string_lossy(), Isa::supported())).transpose()
    }

    /// Parses `name`, which must be among the instruction sets `supported` by a processor.
    fn among(name: &str, supported: &[Isa]) -> Result<Isa> {
        let isa: Isa = name.parse().map_err(|error| match error {
            Error::UnknownName { name, known, .. } => {
                Error::UnknownName { what: "LM_CPU instruction set", name, known }
            }
            other => other,
        })?;
        let best = supported.last().copied().unwrap_or(Isa::Scalar);
        if supported.contains(&isa) { Ok(isa) } else { Err(Error::UnsupportedIsa { isa, best }) }
    }

    /// Instruction sets that this processor supports, narrowest first; detected once.
    pub fn supported() -> &'static [Isa] {
        static SUPPORTED: OnceLock<&[Isa]> = OnceLock::new();
        SUPPORTED.get_or_init(|| {
            let narrower = ALL.iter().take_while(|isa| isa.is_detected()).count();
            &ALL[..narrower]
        })
    }

    /// The widest that this processor supports.
    fn best() -> Isa {
        Isa::supported().last().copied().unwrap_or(Isa::Scalar)
    }

    /// Returns true if the processor has what this instruction set adds to those before it.
    #[cfg(target_arch = "x86_64")]
    fn is_detected(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Isa::AvxVnni => {
                is_x86_feature_detected!("avxvnni")
                    || is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512vnni")
            }
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            Isa::Amx => Amx::works(),
            _ => false,
        }
    }

    /// Returns true if the processor has what this instruction set adds to those before it.
    #[cfg(target_arch = "aarch64")]
    fn is_detected(self) -> bool {
        use std::arch::is_aarch64_feature_detected;
        match self {
            Isa::Scalar => true,
            Isa::Neon => Baseline::works(),
            Isa::Dotprod => is_aarch64_feature_detected!("dotprod") && Dotprod::works(),
            Isa::I8mm => is_aarch64_feature_detected!("i8mm") && I8mm::works() && Usmmla::works(),
            _ => false,
        }
    }

    /// Returns true if the processor has what this instruction set adds to those before it.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_detected(self) -> bool {
        self == Isa::Scalar
    }

    /// Runs `kernel` in its copy compiled for this instruction set.
    ///
    /// # Panics
    /// When this processor lacks it, which only a test that names it can cause.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        assert!(Isa::supported().contains(&self), "this processor cannot run {self} kernels");
        match self {
            Isa::Scalar => kernel.run::<F32x16>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above.
            Isa::Avx2 => unsafe { run_avx2(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above: those of AVX-512 where there is no AVX-VNNI.
            Isa::AvxVnni => unsafe {
                if K::ONLY_FLOATS {
                    run_avx2(kernel)
                } else if is_x86_feature_detected!("avxvnni") {
                    run_avx_vnni(kernel)
                } else {
                    run_avx_vnni_evex(kernel)
                }
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above.
            Isa::Avx512 => unsafe { run_avx512::<NoMatrixUnit, K>(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above.
            Isa::Amx => unsafe {
                if K::ONLY_FLOATS {
                    run_avx512::<NoMatrixUnit, K>(kernel)
                } else {
                    run_avx512::<Amx, K>(kernel)
                }
            },
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => run_neon(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Dotprod | Isa::I8mm if K::ONLY_FLOATS => run_neon(kernel),
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the feature was detected, as asserted above.
            Isa::Dotprod => unsafe { run_dotprod(kernel) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the feature was detected, as asserted above.
            Isa::I8mm => unsafe { run_i8mm(kernel) },
            _ => unreachable!("not supported, as asserted above"),
        }
    }
}

/// A kernel over slices, written once and compiled for every [`Isa`].
///
/// `run` and all that it calls in its loops must be `#[inline(always)]`: only code inlined into the function with
/// the target features is compiled with them. A kernel for a single instruction set goes beside this, by a match on
/// the `Isa` at dispatch.
pub(super) trait Kernel {
    /// Result of the kernel.
    type Output;
    /// True if it has no products of bytes, so that on paths that only add such products it runs in the copy for the path below them.
    const ONLY_FLOATS: bool = false;
    /// Runs the kernel with floats in registers of type `V`.
    fn run<V: Lanes>(self) -> Self::Output;
}

// Not inlined if one kernel calls another: a format's loops are a function of their own.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avxvnni,avx2,fma,f16c")]
pub(super) fn run_avx_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2<Vnni<Vex>>>()
}

// Without the features of AVX-512, which would give it more registers.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run_avx_vnni_evex<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2<Vnni<Evex>>>()
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn run_avx512<U: MatrixUnit, K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512<U>>()
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
pub(super) fn run_neon<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<Baseline>>()
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
#[target_feature(enable = "neon,dotprod")]
pub(super) fn run_dotprod<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<Dotprod>>()
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(super) fn run_i8mm<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Neon<I8mm>>()
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMES.iter().find(|(isa, _)| isa == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

impl FromStr for Isa {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = "scalar, avx2, avxvnni, avx512, amx, neon, dotprod, i8mm";
        let unknown = || Error::UnknownName { what: "instruction set", name: name.to_owned(), known };
        NAMES.iter().find(|named| named.1 == name).map(|named| named.0).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests;
