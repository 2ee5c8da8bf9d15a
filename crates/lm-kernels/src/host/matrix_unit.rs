//! Matrix units: instructions that multiply whole tiles of bytes (Intel AMX).

/// Rows of activations, and of weights, in a product of tiles.
pub(super) const SIDE: usize = 32;
/// Columns per step of a product.
pub(super) const STEP: usize = 64;

/// The dot products of [`SIDE`] rows of activations with [`SIDE`] rows of weights.
pub(super) type Products = [[i32; SIDE]; SIDE];

/// Tile multiplication of a CPU path.
///
/// The instructions of an implementation are available: only [`Isa::run`](super::cpu::Isa::run) chooses one.
pub(super) trait MatrixUnit {
    /// True if the path has a matrix unit.
    const PRESENT: bool;

    /// Configures the unit for [`MatrixUnit::multiply`] on this thread, until [`MatrixUnit::release`].
    fn configure();
    /// Releases the unit's registers.
    fn release();

    /// Multiplies signed activations by unsigned weights over `steps` times [`STEP`] columns; at least one
    /// step.
    ///
    /// # Safety
    /// `a` has [`SIDE`] rows, `a_stride` bytes apart, and each `b` has `steps` tiles of 1,024 bytes: 16 lines of four columns of
    /// 16 rows each.
    unsafe fn multiply(a: *const i8, a_stride: usize, b: [*const u8; 2], steps: usize, out: &mut Products);
}

/// No matrix unit.
#[derive(Clone, Copy)]
pub(super) struct NoMatrixUnit;

impl MatrixUnit for NoMatrixUnit {
    const PRESENT: bool = false;

    fn configure() {}
    fn release() {}

    unsafe fn multiply(_: *const i8, _: usize, _: [*const u8; 2], _: usize, _: &mut Products) {
        unreachable!("nobody asks a unit that is not present")
    }
}

/// A tile program, in a single definition for two uses: a function of machine instructions, and data that the tests
/// interpret on processors without the unit.
///
/// Instructions: `zero` a register, `load` one from a base and a stride, `dot` (add to the first the products of
/// the second and the third), `step` a base by a number of bytes, `store` a register at an offset of a base and a
/// stride.
macro_rules! tile_program {
    (
        $(#[$attribute:meta])* $function:ident, $data:ident:
        { $([$($first:tt)+])+ } loop { $([$($body:tt)+])+ } { $([$($last:tt)+])+ }
    ) => {
        $(#[$attribute])*
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        unsafe fn $function(a: [*const i8; 2], a_stride: usize, b: [*const u8; 2], steps: usize, c: [*mut i32; 2]) {
            // SAFETY: the caller has configured the unit and guarantees the memory; the registers are
            // declared as clobbered.
            unsafe {
                std::arch::asm!(
                    $(tile_text!($($first)+),)+
                    "2:",
                    $(tile_text!($($body)+),)+
                    "dec {steps}",
                    "jnz 2b",
                    $(tile_text!($($last)+),)+
                    a0 = inout(reg) a[0] => _,
                    a1 = inout(reg) a[1] => _,
                    b0 = inout(reg) b[0] => _,
                    b1 = inout(reg) b[1] => _,
                    c0 = in(reg) c[0],
                    c1 = in(reg) c[1],
                    a_stride = in(reg) a_stride,
                    b_stride = in(reg) STEP,
                    c_stride = in(reg) size_of::<[i32; SIDE]>(),
                    steps = inout(reg) steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        /// The instructions before, in and after the loop.
        #[cfg(test)]
        const $data: [&[tests::Instruction]; 3] =
            [&[$(tile_data!($($first)+)),+], &[$(tile_data!($($body)+)),+], &[$(tile_data!($($last)+)),+]];
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! tile_text {
    (zero $t:literal) => {
        concat!("tilezero tmm", $t)
    };
    (load $t:literal $base:ident $stride:ident) => {
        concat!("tileloadd tmm", $t, ", [{", stringify!($base), "} + {", stringify!($stride), "}]")
    };
    (dot $c:literal $a:literal $b:literal) => {
        concat!("tdpbsud tmm", $c, ", tmm", $a, ", tmm", $b)
    };
    (step $base:ident $bytes:literal) => {
        concat!("add {", stringify!($base), "}, ", $bytes)
    };
    (store $t:literal $base:ident $stride:ident $offset:literal) => {
        concat!(
            "tilestored [{",
            stringify!($base),
            "} + {",
            stringify!($stride),
            "} + ",
            $offset,
            "], tmm",
            $t
        )
    };
}

#[cfg(test)]
macro_rules! tile_data {
    (zero $t:literal) => {
        tests::Instruction::Zero($t)
    };
    (load $t:literal $base:ident $stride:ident) => {
        tests::Instruction::Load($t, stringify!($base), stringify!($stride))
    };
    (dot $c:literal $a:literal $b:literal) => {
        tests::Instruction::Dot($c, $a, $b)
    };
    (step $base:ident $bytes:literal) => {
        tests::Instruction::Step(stringify!($base), $bytes)
    };
    (store $t:literal $base:ident $stride:ident $offset:literal) => {
        tests::Instruction::Store($t, stringify!($base), stringify!($stride), $offset)
    };
}

tile_program! {
    /// 2×2 accumulator tiles; each loaded tile is used twice.
    ///
    /// # Safety
    /// As for [`MatrixUnit::multiply`], with the rows of `a` and `c` in two halves of 16; the unit is configured.
    multiply_tiles, PROGRAM:
    { [zero 0] [zero 1] [zero 2] [zero 3] }
    loop {
        [load 4 a0 a_stride] [load 6 b0 b_stride] [dot 0 4 6]
        [load 7 b1 b_stride] [dot 1 4 7]
        [load 5 a1 a_stride] [dot 2 5 6] [dot 3 5 7]
        [step a0 64] [step a1 64] [step b0 1024] [step b1 1024]
    }
    { [store 0 c0 c_stride 0] [store 1 c0 c_stride 64] [store 2 c1 c_stride 0] [store 3 c1 c_stride 64] }
}

/// Intel AMX with 8-bit integers.
///
/// The tests run it only on processors that have it; elsewhere they interpret the program above. [`Amx::works`]
/// checks a product of the instructions against plain sums once, before the path is offered.
///
/// # Source
/// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18; `TDPBSUD` in volume 2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Amx;

/// The operand of `ldtilecfg`.
#[cfg(target_arch = "x86_64")]
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

#[cfg(target_arch = "x86_64")]
impl MatrixUnit for Amx {
    const PRESENT: bool = true;

    #[inline(always)]
    fn configure() {
        // Eight registers of 16 rows of 64 bytes.
        let mut config =
            TileConfig { palette: 1, start_row: 0, reserved: [0; 14], bytes_per_row: [0; 16], rows: [0; 16] };
        config.bytes_per_row[..8].fill(STEP as u16);
        config.rows[..8].fill(16);
        // SAFETY: AMX is there and this process may use it, as `Isa::best` has detected; 64 bytes are read.
        unsafe {
            std::arch::asm!("ldtilecfg [{config}]", config = in(reg) &raw const config, options(nostack, readonly))
        };
    }

    #[inline(always)]
    fn release() {
        // SAFETY: AMX is there.
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

#[cfg(target_arch = "x86_64")]
impl Amx {
    /// Returns true if this processor has the unit, the system lets this process use it, and its results
    /// are correct.
    pub fn works() -> bool {
        Self::is_there() && Self::is_permitted() && Self::multiplies()
    }

    fn is_there() -> bool {
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

    /// Checks one product against plain sums.
    fn multiplies() -> bool {
        const STEPS: usize = 2;
        let a: Vec<i8> = (0..SIDE * STEPS * STEP).map(|i| (i * 37 % 255) as i8).collect();
        let b: Vec<u8> = (0..2 * STEPS * 1024).map(|i| (i * 101 % 256) as u8).collect();
        let (first, second) = b.split_at(STEPS * 1024);
        let mut products = [[0; SIDE]; SIDE];
        Self::configure();
        // SAFETY: the sizes are the required ones, as the lines above show.
        unsafe {
            Self::multiply(a.as_ptr(), STEPS * STEP, [first.as_ptr(), second.as_ptr()], STEPS, &mut products)
        };
        Self::release();
        products == plain_products(&a, [first, second])
    }
}

/// Reference implementation of [`MatrixUnit::multiply`].
#[cfg(target_arch = "x86_64")]
fn plain_products(a: &[i8], b: [&[u8]; 2]) -> Products {
    let columns = a.len() / SIDE;
    let weight = |row: usize, column: usize| b[row / 16][column / 4 * STEP + row % 16 * 4 + column % 4];
    let mut products = [[0; SIDE]; SIDE];
    for (a, products) in a.chunks_exact(columns).zip(&mut products) {
        for (row, product) in products.iter_mut().enumerate() {
            *product = (0..columns).map(|column| i32::from(a[column]) * i32::from(weight(row, column))).sum();
        }
    }
    products
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An instruction of a tile program.
    #[derive(Clone, Copy, Debug)]
    pub enum Instruction {
        Zero(usize),
        Load(usize, &'static str, &'static str),
        Dot(usize, usize, usize),
        Step(&'static str, usize),
        Store(usize, &'static str, &'static str, usize),
    }

    /// The registers: 16 rows of 64 bytes each.
    type Registers = [[[u8; STEP]; 16]; 8];

    /// Interprets the tile program as the manual describes its instructions.
    #[derive(Clone, Copy)]
    pub struct Interpreter;

    /// Addresses of a program's bases.
    struct Bases {
        a: [*const i8; 2],
        b: [*const u8; 2],
        c: [*mut i32; 2],
        a_stride: usize,
    }

    impl Bases {
        fn address(&self, name: &str) -> *mut u8 {
            match name {
                "a0" => self.a[0].cast_mut().cast(),
                "a1" => self.a[1].cast_mut().cast(),
                "b0" => self.b[0].cast_mut(),
                "b1" => self.b[1].cast_mut(),
                "c0" => self.c[0].cast(),
                "c1" => self.c[1].cast(),
                other => panic!("no base {other}"),
            }
        }

        fn stride(&self, name: &str) -> usize {
            match name {
                "a_stride" => self.a_stride,
                "b_stride" => STEP,
                "c_stride" => size_of::<[i32; SIDE]>(),
                other => panic!("no stride {other}"),
            }
        }

        fn step(&mut self, name: &str, bytes: usize) {
            match name {
                "a0" => self.a[0] = self.a[0].wrapping_add(bytes),
                "a1" => self.a[1] = self.a[1].wrapping_add(bytes),
                "b0" => self.b[0] = self.b[0].wrapping_add(bytes),
                "b1" => self.b[1] = self.b[1].wrapping_add(bytes),
                other => panic!("{other} is not stepped"),
            }
        }

        /// # Safety
        /// The instruction reads and writes only memory of the caller.
        unsafe fn run(&mut self, instruction: Instruction, registers: &mut Registers) {
            match instruction {
                Instruction::Zero(t) => registers[t] = [[0; STEP]; 16],
                Instruction::Load(t, base, stride) => {
                    for (row, out) in registers[t].iter_mut().enumerate() {
                        let from = self.address(base).wrapping_add(row * self.stride(stride));
                        // SAFETY: guaranteed by the caller.
                        *out = unsafe { from.cast::<[u8; STEP]>().read_unaligned() };
                    }
                }
                Instruction::Dot(c, a, b) => registers[c] = dot(&registers[c], &registers[a], &registers[b]),
                Instruction::Step(base, bytes) => self.step(base, bytes),
                Instruction::Store(t, base, stride, offset) => {
                    for (row, bytes) in registers[t].iter().enumerate() {
                        let to = self.address(base).wrapping_add(row * self.stride(stride) + offset);
                        // SAFETY: guaranteed by the caller.
                        unsafe { to.cast::<[u8; STEP]>().write_unaligned(*bytes) };
                    }
                }
            }
        }
    }

    /// `TDPBSUD`: signed bytes of the rows of `a` times unsigned bytes of the rows of `b`, four at a time.
    fn dot(c: &[[u8; STEP]; 16], a: &[[u8; STEP]; 16], b: &[[u8; STEP]; 16]) -> [[u8; STEP]; 16] {
        let mut out = *c;
        for (out, a) in out.iter_mut().zip(a) {
            for (column, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let mut sum = i32::from_le_bytes(*out);
                for (a, b) in a.as_chunks::<4>().0.iter().zip(b) {
                    for i in 0..4 {
                        sum += i32::from(a[i] as i8) * i32::from(b[4 * column + i]);
                    }
                }
                *out = sum.to_le_bytes();
            }
        }
        out
    }

    impl MatrixUnit for Interpreter {
        const PRESENT: bool = true;

        fn configure() {}
        fn release() {}

        unsafe fn multiply(
            a: *const i8,
            a_stride: usize,
            b: [*const u8; 2],
            steps: usize,
            out: &mut Products,
        ) {
            let c = out.as_mut_ptr().cast::<i32>();
            let c = [c, c.wrapping_add(SIDE / 2 * SIDE)];
            let mut bases = Bases { a: [a, a.wrapping_add(SIDE / 2 * a_stride)], b, c, a_stride };
            let mut registers = [[[0; STEP]; 16]; 8];
            let [first, body, last] = PROGRAM;
            let repeated = (0..steps).flat_map(|_| body);
            for instruction in first.iter().chain(repeated).chain(last) {
                // SAFETY: the program stays within the operands, which the caller guarantees; a wrong one
                // fails the test below.
                unsafe { bases.run(*instruction, &mut registers) };
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_program_multiplies_tiles() {
        for steps in [1, 2, 5] {
            let a: Vec<i8> = (0..SIDE * steps * STEP).map(|i| (i * 91 % 251) as i8).collect();
            let b: Vec<u8> = (0..2 * steps * 1024).map(|i| (i * 57 % 256) as u8).collect();
            let (first, second) = b.split_at(steps * 1024);
            let mut products = [[-1; SIDE]; SIDE];
            let operands = [first.as_ptr(), second.as_ptr()];
            // SAFETY: the sizes are the required ones, as the lines above show.
            unsafe { Interpreter::multiply(a.as_ptr(), steps * STEP, operands, steps, &mut products) };
            assert_eq!(products, plain_products(&a, [first, second]), "{steps} steps");
        }
    }
}
