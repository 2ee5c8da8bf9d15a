//! Selection of a path by the processor and by `LM_CPU`.

use std::process::Command;

use super::super::isa::NAMES;
#[cfg(target_arch = "x86_64")]
use super::super::lanes::{Avx2, Avx512, Evex, Lanes, Vex, Vnni};
use super::super::pack::{Arena, Packing, WeightFormat};
use super::*;

/// Runs a test of this module in a process of its own, with `LM_CPU`: the variable is read once.
fn run_with(request: &str, test: &str) {
    let mut child = Command::new(env::current_exe().unwrap());
    let name = format!("host::cpu::tests::{test}");
    let output = child.args(["--exact", &name]).env(VARIABLE, request).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

fn is_requested(name: &str) -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == name)
}

#[test]
fn names_round_trip() {
    for (isa, name) in NAMES {
        assert_eq!(isa.to_string(), name);
        assert_eq!(name.parse::<Isa>().unwrap(), isa);
    }
}

#[test]
fn unsupported_request_is_explained() {
    const SUPPORTED: &[Isa] = &[Isa::Scalar, Isa::Avx2];
    assert_eq!(Isa::among("scalar", SUPPORTED).unwrap(), Isa::Scalar);
    let unknown = Isa::among("sse9", SUPPORTED).unwrap_err();
    assert!(unknown.to_string().contains("scalar, avx2, avxvnni, avx512"), "{unknown}");
    let wide = Isa::among("avx512", SUPPORTED).unwrap_err();
    assert_eq!(
        wide.to_string(),
        "LM_CPU: this processor cannot run `avx512` kernels, only those up to `avx2`"
    );
}

/// Fails if `LM_CPU` requests an instruction set this processor lacks: `cargo xtask` uses it to find
/// the paths on which tests can run.
#[test]
fn environment_variable_is_applied() {
    if let Some(isa) = Isa::requested().expect("LM_CPU names a path of this processor") {
        assert_eq!(isa, Isa::current());
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn unsupported_request_panics_for_every_caller() {
    if is_requested("sse9") {
        let panic = std::panic::catch_unwind(Isa::current).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.starts_with("unknown LM_CPU instruction set `sse9`"), "{message}");
        #[cfg(feature = "burn")]
        assert!(matches!(crate::Device::Cpu.burn(), Err(Error::UnknownName { .. })));
        let packing = Packing::new(&Arena::default(), WeightFormat::Q4, 16, 32);
        assert!(matches!(packing, Err(Error::UnknownName { .. })));
        return;
    }
    run_with("sse9", "unsupported_request_panics_for_every_caller");
}

#[test]
fn narrowest_and_current_isa_are_supported() {
    assert_eq!(Isa::supported().first(), Some(&Isa::Scalar));
    assert!(Isa::supported().contains(&Isa::current()));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn avx512_is_supported_where_detected() {
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    assert_eq!(Isa::supported().contains(&Isa::Avx512), has_avx512);
}

#[test]
fn widest_is_the_default() {
    if Isa::requested().expect("LM_CPU names a path of this processor").is_none() {
        assert_eq!(Some(&Isa::current()), Isa::supported().last());
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn request_is_applied() {
    if is_requested("scalar") {
        assert_eq!(Isa::current(), Isa::Scalar);
        return;
    }
    run_with("scalar", "request_is_applied");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn each_path_runs_its_own_lanes() {
    use std::any::type_name;

    struct Name;
    impl Kernel for Name {
        type Output = &'static str;
        fn run<V: Lanes>(self) -> &'static str {
            type_name::<V>()
        }
    }
    struct Call;
    impl Kernel for Call {
        type Output = &'static str;
        #[inline(always)]
        fn run<V: Lanes>(self) -> &'static str {
            V::call(Name)
        }
    }
    for &isa in Isa::supported() {
        let expected = match isa {
            Isa::Scalar => [type_name::<F32x16>(); 2],
            Isa::Avx2 => [type_name::<Avx2>(); 2],
            Isa::AvxVnni if is_x86_feature_detected!("avxvnni") => [type_name::<Avx2<Vnni<Vex>>>(); 2],
            Isa::AvxVnni => [type_name::<Avx2<Vnni<Evex>>>(); 2],
            Isa::Avx512 => [type_name::<Avx512<NoMatrixUnit>>(); 2],
            // A called kernel does not use the matrix unit.
            Isa::Amx => [type_name::<Avx512<Amx>>(), type_name::<Avx512<NoMatrixUnit>>()],
            _ => unreachable!("a path of AArch64"),
        };
        assert_eq!([isa.run(Name), isa.run(Call)], expected, "{isa}");
    }
}
