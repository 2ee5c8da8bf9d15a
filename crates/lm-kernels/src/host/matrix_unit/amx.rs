//! Matrix unit of Intel AMX (tile registers).

use super::{MatrixUnit, Products, SIDE, STEP, multiplies, multiply_tiles};

/// Intel AMX with 8-bit integers.
///
/// Tests use it only on processors that have it, and an interpreter of its instructions elsewhere.
/// [`Amx::works`] compares one product with plain sums before the instruction set is selected.
///
/// # Source
/// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18; `TDPBSUD` in volume 2.
#[derive(Clone, Copy)]
pub(in crate::host) struct Amx;

/// Operand of `ldtilecfg`.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

impl MatrixUnit for Amx {
    const PRESENT: bool = true;

    #[inline(always)]
    fn configure() {
        // Eight registers of 16 rows of 64 bytes.
        let mut config =
            TileConfig { palette: 1, start_row: 0, reserved: [0; 14], bytes_per_row: [0; 16], rows: [0; 16] };
        config.bytes_per_row[..8].fill(STEP as u16);
        config.rows[..8].fill(16);
        // SAFETY: `Isa::best` has detected that AMX is available to this process; 64 bytes are read.
        unsafe {
            std::arch::asm!("ldtilecfg [{config}]", config = in(reg) &raw const config, options(nostack, readonly))
        };
    }

    #[inline(always)]
    fn release() {
        // SAFETY: AMX is available.
        unsafe { std::arch::asm!("tilerelease", options(nostack, nomem)) };
    }

    #[inline(always)]
    unsafe fn multiply(a: *const i8, a_stride: usize, b: [*const u8; 2], steps: usize, out: &mut Products) {
        let c = out.as_mut_ptr().cast::<i32>();
        // SAFETY: the caller guarantees `a` and `b`; `c` is the two halves of `out`.
        unsafe {
            let halves = [c, c.add(SIDE / 2 * SIDE)];
            multiply_tiles([a, a.add(SIDE / 2 * a_stride)], a_stride, b, steps, halves);
        }
    }
}

impl Amx {
    /// Returns true if the processor has AMX, the system permits its use, and its results are correct.
    pub fn works() -> bool {
        Self::is_present() && Self::is_permitted() && multiplies::<Self>()
    }

    fn is_present() -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
        const TILE_AND_INT8: u32 = 1 << 24 | 1 << 25;
        const TILE_STATE: u64 = 1 << 17 | 1 << 18;
        if __cpuid(0).eax < 7 || !is_x86_feature_detected!("xsave") {
            return false;
        }
        #[target_feature(enable = "xsave")]
        fn enabled_state() -> u64 {
            // SAFETY: register 0 exists if XSAVE does.
            unsafe { _xgetbv(0) }
        }
        // SAFETY: XSAVE was detected.
        let state = unsafe { enabled_state() };
        __cpuid_count(7, 0).edx & TILE_AND_INT8 == TILE_AND_INT8 && state & TILE_STATE == TILE_STATE
    }

    /// Requests the tile registers from Linux, for all threads of the process.
    #[cfg(target_os = "linux")]
    fn is_permitted() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // SAFETY: the call takes two numbers and changes only the permission.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_permitted() -> bool {
        false
    }
}
