//! Every path against the portable one and exact numbers.

use super::super::cpu::{Isa, Kernel};
use super::*;

#[test]
fn every_half_and_bfloat_widens_exactly() {
    for bits in 0..=u16::MAX {
        let half = half::f16::from_bits(bits).to_f32();
        let ours = f16_to_f32(bits);
        assert!(ours.to_bits() == half.to_bits() || (ours.is_nan() && half.is_nan()), "{bits:#x}");
        let brain = half::bf16::from_bits(bits).to_f32();
        let ours = bf16_to_f32(bits);
        assert!(ours.to_bits() == brain.to_bits() || (ours.is_nan() && brain.is_nan()), "{bits:#x}");
    }
}

#[test]
fn every_path_has_exact_powers_of_two() {
    struct LoadExp2([u8; LANES]);

    impl Kernel for LoadExp2 {
        type Output = [f32; LANES];

        fn run<V: Lanes>(self) -> Self::Output {
            let mut out = [0.0; LANES];
            V::load_exp2(&self.0).store(&mut out);
            out
        }
    }

    for first in (0..u8::MAX).step_by(LANES) {
        let exponents: [u8; LANES] = std::array::from_fn(|lane| first.saturating_add(lane as u8).min(254));
        let expected = exponents.map(|e| 2_f64.powi(i32::from(e) - 128) as f32);
        for isa in Isa::supported() {
            assert_eq!(isa.run(LoadExp2(exponents)), expected, "{isa}");
        }
    }
}

#[test]
fn floats_are_rounded_to_integers() {
    for i in -127_000..=127_000 {
        let x = i as f32 * 1e-3;
        assert_eq!(round(x) as f32, x.round_ties_even(), "{x}");
    }
    assert_eq!([round(4_194_303.5), round(-4_194_303.5)], [4_194_304, -4_194_304]);
}

#[test]
fn exp_is_close_everywhere() {
    for i in -870_000..=887_000 {
        let x = i as f32 * 1e-4;
        let exact = f64::from(x).exp();
        let error = (f64::from(exp(x)) - exact).abs() / exact;
        assert!(error < 2.0 * f64::from(f32::EPSILON), "exp({x}) is off by {error:e}");
    }
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    assert_eq!(exp(-1e9), 0.0);
    assert_eq!(exp(1e9), f32::INFINITY);
    assert!(exp(f32::NAN).is_nan());
}

#[test]
fn every_path_transposes_and_halves() {
    struct Halves([u32; LANES]);

    impl Kernel for Halves {
        type Output = [[u16; LANES]; 2];

        fn run<V: Lanes>(self) -> Self::Output {
            V::halves(&self.0)
        }
    }

    struct Transpose<'a>([&'a Line; LANES]);

    impl Kernel for Transpose<'_> {
        type Output = [[u32; LANES]; LANES];

        fn run<V: Lanes>(self) -> Self::Output {
            V::transpose(self.0)
        }
    }

    let bytes: Vec<u8> = (0..LANES * size_of::<Line>()).map(|i| (i * 7 % 251) as u8).collect();
    let lines: [&Line; LANES] = std::array::from_fn(|line| &bytes.as_chunks().0[line]);
    let word = |line: usize, index: usize| u32::from_le_bytes(lines[line].as_chunks().0[index]);
    let expected: [[u32; LANES]; LANES] =
        std::array::from_fn(|index| std::array::from_fn(|line| word(line, index)));
    for isa in Isa::supported() {
        assert_eq!(isa.run(Transpose(lines)), expected, "{isa}");
        let words = expected[1].map(|word| word.wrapping_mul(0x9e37_79b9));
        let [low, high] = isa.run(Halves(words));
        let joined: Vec<u32> =
            low.iter().zip(high).map(|(low, high)| u32::from(*low) | u32::from(high) << 16).collect();
        assert_eq!(joined, words, "{isa}");
    }
}

#[test]
fn dot_takes_the_tail() {
    for len in [0, 1, 15, 16, 17, 40] {
        let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let expected: f32 = x.iter().map(|x| x * x).sum();
        assert_eq!(dot::<F32x16>(&x, &x), expected);
    }
}
