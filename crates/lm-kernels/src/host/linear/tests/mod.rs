//! `linear` against loops in double precision, and against itself with every split and batching.

#[cfg(target_arch = "x86_64")]
mod matrix_unit;
mod partition;

use proptest::prelude::*;

use super::super::testing::{Random, bits, halves};
use super::super::{GgmlType, PackedMatrix, Pool, PrefetchPlan, Source, WeightFormat};
use super::*;

fn formats() -> Vec<WeightFormat> {
    let ggml = GgmlType::ALL.iter().map(|&ggml| WeightFormat::Ggml(ggml));
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4]
        .into_iter()
        .chain(ggml)
        .collect()
}

/// rows, cols, m: full tiles and blocks, and partial ones of every kind; few rows and, for every format,
/// many.
const SHAPES: [(usize, usize, usize); 14] = [
    (1, 1, 1),
    (16, 32, 1),
    (64, 64, 8),
    (17, 33, 9),
    (100, 96, 3),
    (130, 70, 17),
    (5, 31, 2),
    (48, 200, 16),
    (65, 256, 1),
    (33, 600, 5),
    (40, 1100, 21),
    (32, 512, 40),
    (16, 800, 7),
    (33, 300, 101),
];

/// A weight of at least `cols` columns, rounded up to full blocks, and rows.
fn case(
    random: &mut Random,
    format: WeightFormat,
    rows: usize,
    cols: usize,
    m: usize,
) -> (PackedMatrix, Vec<f32>) {
    let packed = match format {
        WeightFormat::Ggml(ggml) => {
            let cols = cols.next_multiple_of(ggml.block_len());
            PackedMatrix::from_blocks(ggml, rows, cols, &random.blocks(ggml, rows, cols)).unwrap()
        }
        _ => PackedMatrix::pack(format, rows, cols, Source::F32(&random.normal(rows * cols))).unwrap(),
    };
    let x = random.normal(m * packed.cols());
    (packed, x)
}

fn run(isa: Isa, threads: usize, w: &PackedMatrix, x: &[f32], m: usize) -> Vec<f32> {
    let mut y = vec![f32::NAN; m * w.rows()];
    let input = Input { x, rows: m, norm: None };
    linears_on(
        isa,
        &Pool::new(threads),
        input,
        &mut [Output { w, bias: None, then: Then::Store, y: &mut y }],
    );
    y
}

/// The exact product with the packed weight, and the error bound of the arithmetic.
fn expected_of(w: &PackedMatrix, x: &[f32], row: usize) -> (f64, f64) {
    let mut weights = vec![0.0; w.cols()];
    w.dequantize_row(row, &mut weights);
    let product = |(x, w): (&f32, &f32)| f64::from(*x) * f64::from(*w);
    let sum = x.iter().zip(&weights).map(product).sum();
    let magnitude: f64 = x.iter().zip(&weights).map(product).map(f64::abs).sum();
    let rounding = magnitude * w.cols() as f64 * f64::from(f32::EPSILON);
    let Some(block) = activation_block(w.format()) else { return (sum, 1.01 * rounding) };
    // In types with offsets, the rounded value is the sum before the offsets are added.
    let rounding = if matches!(w.format(), WeightFormat::Ggml(_)) { 30.0 * rounding } else { rounding };
    let of_activations = |(x, w): (&[f32], &[f32])| {
        let largest = x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let weights: f64 = w.iter().map(|w| f64::from(w.abs())).sum();
        weights * f64::from(largest) / 254.0
    };
    let blocks = x.chunks(block).zip(weights.chunks(block));
    (sum, 1.01 * rounding + 1.001 * blocks.map(of_activations).sum::<f64>())
}

#[test]
fn products_equal_the_packed_weight() {
    let mut random = Random(1);
    for format in formats() {
        for (rows, cols, m) in SHAPES {
            let (w, x) = case(&mut random, format, rows, cols, m);
            let y = run(Isa::current(), 2, &w, &x, m);
            for (i, x) in x.chunks(w.cols()).enumerate() {
                for row in 0..rows {
                    let (exact, tolerance) = expected_of(&w, x, row);
                    let got = f64::from(y[i * rows + row]);
                    assert!(
                        (got - exact).abs() <= tolerance,
                        "{w:?} at [{i}, {row}]: {got}, expected {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_threads_isa_and_prefetches_give_the_same_bits() {
    let mut random = Random(2);
    for format in formats() {
        for (rows, cols, m) in SHAPES {
            let (w, x) = case(&mut random, format, rows, cols, m);
            let all = bits(&run(Isa::Scalar, 1, &w, &x, m));
            for (&isa, plan) in
                Isa::supported().iter().flat_map(|isa| PrefetchPlan::ALL.map(|plan| (isa, plan)))
            {
                plan.set();
                assert_eq!(bits(&run(isa, 3, &w, &x, m)), all, "{w:?} with {isa}, prefetches {plan}");
                for (i, x) in x.chunks(w.cols()).enumerate() {
                    let alone = bits(&run(isa, 1, &w, x, 1));
                    assert_eq!(alone, all[i * rows..(i + 1) * rows], "{w:?} with {isa}, row {i} alone");
                }
            }
        }
    }
}

#[test]
fn row_does_not_depend_on_its_batch() {
    let mut random = Random(6);
    for format in formats() {
        let (rows, cols) = (50, 700);
        let (w, x) = case(&mut random, format, rows, cols, 110);
        let cols = w.cols();
        let alone: Vec<_> = x.chunks(cols).map(|x| run(Isa::Scalar, 1, &w, x, 1)).collect();
        for m in (1..=40).chain([97, 98, 100, 104, 110]) {
            for &isa in Isa::supported() {
                let all = run(isa, 2, &w, &x[..m * cols], m);
                assert_eq!(bits(&all), bits(&alone[..m].concat()), "{w:?} with {isa}, {m} rows");
            }
        }
    }
}

/// Rows and weights at the limits of their ranges, where 16-bit sums are closest to overflow.
#[test]
fn extreme_sums_are_exact() {
    const M: usize = 100; // Many for both formats.
    let signs = |seed: usize, i: usize| if (i * 7 + seed).is_multiple_of(3) { -1.0 } else { 1.0 };
    let patterns: [fn(usize) -> f32; 4] = [
        |_| 1.0,
        |_| -1.0,
        |i| if i.is_multiple_of(2) { 1.0 } else { -1.0 },
        |i| if i % 4 < 2 { 1.0 } else { -1.0 },
    ];
    let (rows, cols) = (16, 512);
    for format in [WeightFormat::Q4, WeightFormat::Q8] {
        for weights in patterns {
            let source: Vec<f32> =
                (0..rows * cols).map(|i| weights(i) * signs(i / cols, i % cols / 32)).collect();
            let w = PackedMatrix::pack(format, rows, cols, Source::F32(&source)).unwrap();
            let x: Vec<f32> = patterns.iter().flat_map(|x| (0..cols).map(x)).cycle().take(M * cols).collect();
            let expected = run(Isa::Scalar, 1, &w, &x, M);
            for (y, x) in expected.chunks(rows).zip(x.chunks(cols)) {
                for (row, y) in y.iter().enumerate() {
                    let (exact, tolerance) = expected_of(&w, x, row);
                    assert!((f64::from(*y) - exact).abs() <= tolerance, "{w:?}: {y}, expected {exact}");
                }
            }
            for &isa in Isa::supported() {
                assert_eq!(run(isa, 1, &w, &x, M), expected, "{w:?} with {isa}");
            }
        }
    }
}

/// The same for block types: all codes and integer scales at one limit, or alternating between both.
#[test]
fn extreme_block_sums_are_exact() {
    let (rows, cols) = (16, 512);
    for &ggml in GgmlType::ALL {
        for bytes in [[0xff, 0xff], [0x00, 0x00], [0x80, 0x7f], [0xff, 0x00], [0x88, 0x77]] {
            let mut blocks = Random(7).blocks(ggml, rows, cols);
            let scales = blocks.clone();
            blocks.iter_mut().enumerate().for_each(|(i, byte)| *byte = bytes[i / 16 % 2]);
            for (block, scales) in
                blocks.chunks_mut(ggml.block_bytes()).zip(scales.chunks(ggml.block_bytes()))
            {
                let halves = halves(ggml).iter().flat_map(|&at| [at, at + 1]);
                // An exponent, and an f16 in pieces.
                let others: &[usize] = match ggml {
                    GgmlType::Mxfp4 => &[0],
                    GgmlType::Iq1M => &[49, 51, 53, 55],
                    _ => &[],
                };
                halves.chain(others.iter().copied()).for_each(|at| block[at] = scales[at]);
            }
            let w = PackedMatrix::from_blocks(ggml, rows, cols, &blocks).unwrap();
            let x: Vec<f32> =
                (0..20 * cols).map(|i| if i / 16 % (1 + i / cols) == 0 { 1.0 } else { -1.0 }).collect();
            let expected = run(Isa::Scalar, 1, &w, &x, 20);
            for (y, x) in expected.chunks(rows).zip(x.chunks(cols)) {
                for (row, y) in y.iter().enumerate() {
                    let (exact, tolerance) = expected_of(&w, x, row);
                    assert!((f64::from(*y) - exact).abs() <= tolerance, "{w:?}: {y}, expected {exact}");
                }
            }
            for &isa in Isa::supported() {
                assert_eq!(run(isa, 1, &w, &x, 20), expected, "{w:?} with {isa}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_shape_matches_the_reference_bits(
        format in prop::sample::select(formats()),
        (rows, cols, m) in (1..70_usize, 1..600_usize, 1..30_usize),
        seed: u64,
        sizes in prop::collection::vec(prop_oneof![Just(0.0_f32), Just(1e-30), Just(1.0), Just(1e4)], 1..5),
    ) {
        let (w, mut x) = case(&mut Random(seed), format, rows, cols, m);
        x.iter_mut().enumerate().for_each(|(i, x)| *x *= sizes[i / 50 % sizes.len()]);
        let expected = bits(&run(Isa::Scalar, 1, &w, &x, m));
        for &isa in Isa::supported() {
            prop_assert_eq!(bits(&run(isa, 2, &w, &x, m)), expected.clone(), "{:?} with {}", w, isa);
        }
    }
}

#[test]
fn nan_activation_affects_only_its_row() {
    let mut random = Random(3);
    for format in formats() {
        for bad in [f32::NAN, f32::INFINITY] {
            let (w, mut x) = case(&mut random, format, 20, 64, 3);
            x[w.cols() + 40] = bad;
            let y = run(Isa::current(), 1, &w, &x, 3);
            assert!(y[20..40].iter().all(|y| !y.is_finite()), "{format}: {bad} is lost");
            assert!(y[..20].iter().chain(&y[40..]).all(|y| y.is_finite()), "{format}: {bad} spreads");
        }
    }
}

/// The operations of the fused functions, run one after another.
fn one_by_one(w: &PackedMatrix, x: &[f32], norm: Option<Norm<'_>>, bias: &[f32], before: &[f32]) -> Vec<f32> {
    let (pool, mut normed) = (Pool::new(1), x.to_vec());
    if let Some(Norm { weight, eps }) = norm {
        crate::host::rms_norm(&pool, x, weight, eps, &mut normed);
    }
    let mut y = vec![0.0; before.len()];
    linear(&pool, w, &normed, x.len() / w.cols(), &mut y);
    let biased = y.iter().zip(bias.iter().cycle()).map(|(y, bias)| y + bias);
    before.iter().zip(biased).map(|(before, y)| before + y).collect()
}

#[test]
fn fused_layers_equal_separate_layers() {
    let mut random = Random(4);
    for (m, cols) in [(1, 64_usize), (5, 300), (19, 600)] {
        let [q4_k, q8_0] = [GgmlType::Q4K, GgmlType::Q8_0].map(WeightFormat::Ggml);
        for formats in [
            [WeightFormat::Q4, WeightFormat::Q8],
            [WeightFormat::Q4; 2],
            [WeightFormat::Bf16; 2],
            [q4_k, WeightFormat::Q4],
            [q8_0; 2],
        ] {
            let has_blocks = matches!(formats[0], WeightFormat::Ggml(_));
            let cols = if has_blocks { cols.next_multiple_of(256) } else { cols };
            let norm_weight = random.normal(cols);
            let norm = Some(Norm { weight: &norm_weight, eps: 1e-6 });
            let (w_a, x) = case(&mut random, formats[0], 50, cols, m);
            let (w_b, _) = case(&mut random, formats[1], 50, cols, m);
            let (bias, before) = (random.normal(50), random.normal(m * 50));
            let input = Input { x: &x, rows: m, norm };
            for &isa in Isa::supported() {
                let (mut a, mut b) = (before.clone(), before.clone());
                let mut outputs = [
                    Output { w: &w_a, bias: Some(&bias), then: Then::Add, y: &mut a },
                    Output { w: &w_b, bias: None, then: Then::Store, y: &mut b },
                ];
                linears_on(isa, &Pool::new(2), input, &mut outputs);
                assert_eq!(
                    bits(&a),
                    bits(&one_by_one(&w_a, &x, norm, &bias, &before)),
                    "{formats:?} with {isa}"
                );
                let zeros = vec![0.0; m * 50];
                let plain = one_by_one(&w_b, &x, norm, &[0.0], &zeros);
                assert_eq!(b, plain, "{formats:?} with {isa}");
                let (gate, up) = (one_by_one(&w_a, &x, norm, &[0.0], &zeros), plain);
                for activation in [Activation::Silu, Activation::GeluTanh, Activation::Sigmoid] {
                    let mut y = vec![f32::NAN; m * 50];
                    let then = Then::Activate(activation);
                    let output = Output { w: &w_a, bias: Some(&bias), then, y: &mut y };
                    linears_on(isa, &Pool::new(3), input, &mut [output]);
                    let sums = one_by_one(&w_a, &x, norm, &bias, &zeros);
                    let expected: Vec<f32> = sums.iter().map(|&sum| activation.gate(sum, 1.0)).collect();
                    assert_eq!(y, expected, "{formats:?} with {isa}");
                    let mut y = vec![f32::NAN; m * 50];
                    gated_on(isa, &Pool::new(3), input, [&w_a, &w_b], activation, &mut y);
                    let expected: Vec<f32> =
                        gate.iter().zip(&up).map(|(g, u)| activation.gate(*g, *u)).collect();
                    assert_eq!(y, expected, "{formats:?} with {isa}");
                }
            }
        }
    }
}

#[test]
fn batched_layers_equal_each_layer_alone() {
    let mut random = Random(21);
    for format in formats() {
        for (count, out, m) in [(3, 16, 2), (5, 7, 1), (4, 40, 9)] {
            let (w, x) = case(&mut random, format, count * out, 96, count * m);
            for &isa in Isa::supported() {
                let mut y = vec![f32::NAN; count * m * out];
                batched::batched_linear_on(isa, &Pool::new(2), &w, count, &x, &mut y);
                // Every layer over all rows; of its results those of its own rows and matrix.
                let all = run(isa, 1, &w, &x, count * m);
                for (row, y) in y.chunks_exact(out).enumerate() {
                    let own = row * count * out + row / m * out;
                    assert_eq!(y, &all[own..own + out], "{format} {count} of {out}, row {row}, {isa}");
                }
            }
        }
    }
}

#[test]
fn empty_input_gives_empty_or_zero_output() {
    let empty = PackedMatrix::pack(WeightFormat::Q8, 3, 0, Source::F32(&[])).unwrap();
    assert_eq!(run(Isa::current(), 1, &empty, &[], 2), [0.0; 6]);
    let none = PackedMatrix::pack(WeightFormat::F32, 0, 3, Source::F32(&[])).unwrap();
    assert!(run(Isa::current(), 1, &none, &[1.0; 3], 1).is_empty());
}

#[test]
#[should_panic(expected = "activations are [2, 4]")]
fn wrong_activation_width_is_rejected() {
    let w = PackedMatrix::pack(WeightFormat::F32, 1, 4, Source::F32(&[1.0; 4])).unwrap();
    run(Isa::current(), 1, &w, &[1.0; 7], 2);
}
