//! The instruction sets of this processor, the one in use, and dispatch of kernels to it.

use std::env;
use std::sync::OnceLock;

use super::isa::Isa;
#[cfg(target_arch = "aarch64")]
use super::lanes::{Baseline, ByteProducts, Dotprod, I8mm, run_dotprod, run_i8mm, run_neon};
use super::lanes::{F32x16, Kernel};
#[cfg(target_arch = "x86_64")]
use super::lanes::{run_avx_vnni, run_avx_vnni_evex, run_avx2, run_avx512};
#[cfg(target_arch = "aarch64")]
use super::matrix_unit::Usmmla;
#[cfg(target_arch = "x86_64")]
use super::matrix_unit::{Amx, NoMatrixUnit};
use super::prefetch_plan;
use crate::error::{Error, Result};

/// The environment variable that forces an [`Isa`].
const VARIABLE: &str = "LM_CPU";

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
    /// When `LM_CPU` names an unknown instruction set or one that this processor lacks; there is no fallback.
    /// [`Isa::requested`] returns the error, as does every function that opens a device (`Device::burn`,
    /// `Weight`, `KvPool`) or packs a matrix (`Packing::new`).
    pub fn current() -> Isa {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            prefetch_plan::initialize();
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
        if supported.contains(&isa) {
            Ok(isa)
        } else {
            Err(Error::UnsupportedIsa { isa: isa.name(), best: best.name() })
        }
    }

    /// Instruction sets that this processor supports, narrowest first; detected once.
    pub fn supported() -> &'static [Isa] {
        static SUPPORTED: OnceLock<&[Isa]> = OnceLock::new();
        SUPPORTED.get_or_init(|| {
            let narrower = ALL.iter().take_while(|isa| isa.is_detected()).count();
            &ALL[..narrower]
        })
    }

    /// Widest instruction set that this processor supports.
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
    /// When this processor lacks the instruction set, which only a test that names it can cause.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        assert!(Isa::supported().contains(&self), "this processor cannot run {self} kernels");
        match self {
            Isa::Scalar => kernel.run::<F32x16>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above.
            Isa::Avx2 => unsafe { run_avx2(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the features were detected, as asserted above: those of AVX-512 where there is no
            // AVX-VNNI.
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

#[cfg(test)]
mod tests;
