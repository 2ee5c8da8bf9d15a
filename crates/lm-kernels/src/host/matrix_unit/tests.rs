//! Interpreter of AMX tile programs, for tests on processors without AMX.

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

/// Tile registers: 16 rows of 64 bytes each.
type Registers = [[[u8; STEP]; 16]; 8];

/// Interprets the tile program as the manual describes its instructions.
#[derive(Clone, Copy)]
pub struct Interpreter;

/// Operand addresses of a tile program.
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

    unsafe fn multiply(a: *const i8, a_stride: usize, b: [*const u8; 2], steps: usize, out: &mut Products) {
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
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn tiles_are_multiplied() {
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
