//! Every path against the portable one and exact numbers.

use super::super::isa::Isa;
use super::super::testing::Random;
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
fn exp_is_accurate() {
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
fn dot_includes_the_tail() {
    for len in [0, 1, 15, 16, 17, 40] {
        let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let expected: f32 = x.iter().map(|x| x * x).sum();
        assert_eq!(dot::<F32x16>(&x, &x), expected);
    }
}

/// Random operands of the primitives, with zeros of both signs among the floats.
struct Primitives {
    floats: [[f32; LANES]; 3],
    line: Line,
    halves: [u16; LANES],
    magnitudes: [u8; LANES],
    signs: [u16; 2],
    x: [i8; 4],
}

impl Primitives {
    fn random(random: &mut Random) -> Self {
        let mut bytes = [0_u8; 256];
        bytes.fill_with(|| random.next() as u8);
        let float = |random: &mut Random| match random.next() % 4 {
            0 => 0.0,
            1 => -0.0,
            _ => f32::from(random.next() as i16) * 1e-3,
        };
        Self {
            floats: std::array::from_fn(|_| std::array::from_fn(|_| float(random))),
            line: std::array::from_fn(|i| bytes[i].max(1)),
            // Exponents below that of infinities and NaNs.
            halves: std::array::from_fn(|lane| {
                u16::from_le_bytes([bytes[64 + lane], bytes[80 + lane]]) & 0xbbff
            }),
            magnitudes: std::array::from_fn(|lane| bytes[96 + lane]),
            signs: [random.next() as u16, random.next() as u16],
            x: std::array::from_fn(|i| (bytes[112 + i] as i8).max(-127)),
        }
    }
}

impl Kernel for &Primitives {
    type Output = Vec<[u32; LANES]>;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Self::Output {
        fn bits<V: Lanes>(lanes: V) -> [u32; LANES] {
            let mut out = [0.0; LANES];
            lanes.store(&mut out);
            out.map(f32::to_bits)
        }
        let Primitives { floats, line, halves, magnitudes, signs, x } = self;
        let [a, b, c] = [V::load(&floats[0]), V::load(&floats[1]), V::load(&floats[2])];
        let mut out: Vec<_> = [a.mul(b), a.mul_add(b, c), a.min(b), a.max(b), V::splat(floats[0][0])]
            .into_iter()
            .chain([V::load_f16(halves), V::load_bf16(halves), V::splat(a.mul(b).sum())])
            .map(bits)
            .collect();
        let mut push = |ints: V::Ints| out.push(bits(V::from_ints(ints)));
        let bytes = V::load_bytes(line);
        let small = V::bits_of(bytes, 0, 127);
        let [low, high] = V::load_nibbles(line);
        let (quad, zero) = (V::quad(*x), V::splat_int(0));
        let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
        push(V::dot_bytes(V::start_bytes(-128 * sum), bytes, quad));
        let parts = V::splat_pair([-128, 0]);
        push(V::dot_bytes(V::start_bytes_of(parts, [sum as i16, 7]), bytes, quad));
        push(V::end_codes(zero, V::dot_codes(V::start_codes(zero), small, quad)));
        let seven = V::splat_int(7);
        let codes = V::dot_codes(V::dot_codes(V::start_codes(seven), low, quad), high, quad);
        push(V::end_codes(seven, codes));
        push(V::dot_pairs(zero, V::pair(bytes, [2, 1]), [-300, 517]));
        let [factors, others] = V::factors(magnitudes, *signs);
        let nibbles = V::dot_nibbles(V::start_nibbles(&ZeroPointCorrection::of(2 * sum)), low, quad);
        let scaled = V::add_scaled(zero, V::dot_nibbles(nibbles, high, quad), factors);
        push(V::add_scaled(scaled, V::start_nibbles(&ZeroPointCorrection::of(sum)), others));
        push(V::first_bytes(V::next_bytes(bytes)));
        push(V::add_products(V::splat_int(9), V::first_bytes(bytes), V::first_bytes(V::next_bytes(low))));
        for lanes in [
            small,
            V::bits_of(bytes, 3, 0x1f),
            V::bits_of(bytes, -2, 0xfc),
            V::or(low, V::bits_of(high, -4, 0xf0)),
            V::shuffle(magnitudes, low),
            V::next_bytes(high),
        ] {
            let mut line = [0; size_of::<Line>()];
            V::store_bytes(lanes, &mut line);
            out.push(bytemuck::cast(line));
        }
        out
    }
}

#[test]
fn every_path_matches_the_portable_primitives() {
    let mut random = Random(23);
    for case in 0..200 {
        let operands = Primitives::random(&mut random);
        let expected = Isa::Scalar.run(&operands);
        for isa in Isa::supported() {
            assert_eq!(isa.run(&operands), expected, "{isa}, case {case}");
        }
    }
}
