//! Matrix units: instructions that multiply whole tiles of bytes (Intel AMX) or pairs of rows (Arm's
//! `USMMLA`).

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(test)]
pub(super) mod tests;
#[cfg(target_arch = "aarch64")]
mod usmmla;

#[cfg(target_arch = "x86_64")]
pub(super) use amx::Amx;
#[cfg(target_arch = "aarch64")]
pub(super) use usmmla::Usmmla;

/// Rows of activations, and of weights, in a product of tiles.
pub(super) const SIDE: usize = 32;
/// Columns per step of a product.
pub(super) const STEP: usize = 64;

/// The dot products of [`SIDE`] rows of activations with [`SIDE`] rows of weights.
pub(super) type Products = [[i32; SIDE]; SIDE];

/// Tile multiplication of a CPU path.
///
/// The instructions of an implementation are available: only [`Isa::run`](super::isa::Isa::run) chooses one.
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
    /// `a` has [`SIDE`] rows, `a_stride` bytes apart, and each `b` has `steps` tiles of 1,024 bytes: 16 lines
    /// of four columns of 16 rows each.
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
        unreachable!("an absent unit is never used")
    }
}

/// A tile program, in a single definition for two uses: a function of machine instructions, and data that the
/// tests interpret on processors without the unit.
///
/// Instructions: `zero` a register, `load` one from a base and a stride, `dot` (add to the first the products
/// of the second and the third), `step` a base by a number of bytes, `store` a register at an offset of a
/// base and a stride.
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
    /// As for [`MatrixUnit::multiply`], with the rows of `a` and `c` in two halves of 16; the unit is
    /// configured.
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

/// Checks one product of a unit against plain sums.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn multiplies<U: MatrixUnit>() -> bool {
    const STEPS: usize = 2;
    let a: Vec<i8> = (0..SIDE * STEPS * STEP).map(|i| (i * 37 % 255) as i8).collect();
    let b: Vec<u8> = (0..2 * STEPS * 1024).map(|i| (i * 101 % 256) as u8).collect();
    let (first, second) = b.split_at(STEPS * 1024);
    let mut products = [[0; SIDE]; SIDE];
    U::configure();
    // SAFETY: the sizes are the required ones, as the lines above show.
    unsafe { U::multiply(a.as_ptr(), STEPS * STEP, [first.as_ptr(), second.as_ptr()], STEPS, &mut products) };
    U::release();
    products == plain_products(&a, [first, second])
}

/// Reference implementation of [`MatrixUnit::multiply`].
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
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
