//! Values that packing keeps, and values that it rejects.

use half::{bf16, f16};
use proptest::prelude::*;

use super::super::isa::Isa;
use super::super::testing::{Random, bits};
use super::packing::PackTile;
use super::*;

const FORMATS: [WeightFormat; 5] =
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];

fn unpacked(packed: &PackedMatrix) -> Vec<f32> {
    let mut out = vec![f32::NAN; packed.rows() * packed.cols()];
    for (row, out) in out.chunks_mut(packed.cols().max(1)).enumerate() {
        packed.dequantize_row(row, out);
    }
    out
}

fn pack(format: WeightFormat, rows: usize, cols: usize, values: &[f32]) -> Result<PackedMatrix> {
    PackedMatrix::pack(format, rows, cols, Source::F32(values))
}

fn squared_error(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum()
}

/// A block in plain 4-bit quantisation: the largest magnitude to -8.
fn plain_4_bit(block: &[f32]) -> Vec<f32> {
    let largest = block.iter().fold(0.0_f32, |largest, x| if x.abs() > largest.abs() { *x } else { largest });
    let scale = f16::from_f32(largest / -8.0).to_f32();
    let quant = |x: &f32| if scale == 0.0 { 0.0 } else { (x / scale).round_ties_even().clamp(-8.0, 7.0) };
    block.iter().map(|x| scale * quant(x)).collect()
}

/// Matrices of any shape with values of very different magnitudes.
fn matrix() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    (1..40_usize, 1..80_usize).prop_flat_map(|(rows, cols)| {
        let value = prop_oneof![
            8 => -1.0..1.0_f32,
            1 => -1000.0..1000.0_f32,
            1 => -1e-4..1e-4_f32,
            1 => Just(0.0_f32),
        ];
        (Just(rows), Just(cols), prop::collection::vec(value, rows * cols))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn floats_round_to_the_nearest_value((rows, cols, values) in matrix()) {
        prop_assert_eq!(unpacked(&pack(WeightFormat::F32, rows, cols, &values)?), values.clone());
        let halves: Vec<f32> = values.iter().map(|x| f16::from_f32(*x).to_f32()).collect();
        prop_assert_eq!(unpacked(&pack(WeightFormat::F16, rows, cols, &values)?), halves);
        let brains: Vec<f32> = values.iter().map(|x| bf16::from_f32(*x).to_f32()).collect();
        prop_assert_eq!(unpacked(&pack(WeightFormat::Bf16, rows, cols, &values)?), brains);
    }

    #[test]
    fn eight_bit_error_is_at_most_half_a_step((rows, cols, values) in matrix()) {
        let packed = unpacked(&pack(WeightFormat::Q8, rows, cols, &values)?);
        for (row, packed) in values.chunks(cols).zip(packed.chunks(cols)) {
            for (block, packed) in row.chunks(64).zip(packed.chunks(64)) {
                let largest = block.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
                // The bf16 scale is at least largest / 127 and at most one step above it.
                let step = (largest / 127.0) * 1.008;
                for (x, packed) in block.iter().zip(packed) {
                    prop_assert!((x - packed).abs() <= step * 0.5001, "{} became {} (step {})", x, packed, step);
                }
            }
        }
    }

    /// A group's scale has 15 steps up to that of its block's largest.
    #[test]
    fn four_bit_error_is_bounded_by_group_and_block((rows, cols, values) in matrix()) {
        let packed = unpacked(&pack(WeightFormat::Q4, rows, cols, &values)?);
        let largest = |x: &[f32]| x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for (row, packed) in values.chunks(cols).zip(packed.chunks(cols)) {
            for (block, packed) in row.chunks(256).zip(packed.chunks(256)) {
                for (group, packed) in block.chunks(32).zip(packed.chunks(32)) {
                    let bound = 0.15 * largest(group) + 0.04 * largest(block);
                    for (x, packed) in group.iter().zip(packed) {
                        prop_assert!((x - packed).abs() <= bound, "{} became {} (bound {})", x, packed, bound);
                    }
                }
            }
        }
    }
}

#[test]
fn four_bits_beat_plain_rounding_on_normal_weights() {
    let values = Random(21).normal(256 * 1024);
    let packed = unpacked(&pack(WeightFormat::Q4, 256, 1024, &values).unwrap());
    let energy = squared_error(&values, &vec![0.0; values.len()]);
    let plain: Vec<f32> = values.chunks(32).flat_map(plain_4_bit).collect();
    let (ours, plain) = (squared_error(&values, &packed) / energy, squared_error(&values, &plain) / energy);
    assert!(ours < 0.95 * plain && ours < 6.8e-3, "relative squared error {ours:.2e}, plain {plain:.2e}");
}

/// Models differ in the size of their weights by many powers of two; the quantisation must be
/// scale-invariant.
#[test]
fn quantisation_is_scale_invariant() {
    let values = Random(24).normal(20 * 300);
    for format in [WeightFormat::Q8, WeightFormat::Q4] {
        let expected = unpacked(&pack(format, 20, 300, &values).unwrap());
        for power in [-90, -30, 30, 90] {
            let scaled = |x: &[f32]| -> Vec<f32> { x.iter().map(|x| x * 2.0_f32.powi(power)).collect() };
            let packed = unpacked(&pack(format, 20, 300, &scaled(&values)).unwrap());
            assert_eq!(bits(&packed), bits(&scaled(&expected)), "{format}, 2^{power}");
        }
    }
}

/// Weighted errors: errors of large values count more than those of small values.
#[test]
fn four_bits_reduce_the_weighted_error() {
    let values = Random(25).normal(64 * 1024);
    let packed = unpacked(&pack(WeightFormat::Q4, 64, 1024, &values).unwrap());
    let plain: Vec<f32> = values.chunks(32).flat_map(plain_4_bit).collect();
    let weighed = |found: &[f32]| -> f64 {
        let groups = values.chunks(32).zip(found.chunks(32));
        groups
            .map(|(x, y)| {
                let mean = (x.iter().map(|x| x * x).sum::<f32>() / 32.0).sqrt();
                x.iter().zip(y).map(|(x, y)| f64::from((x.abs() + mean) * (x - y).powi(2))).sum::<f64>()
            })
            .sum()
    };
    let (ours, plain) = (weighed(&packed), weighed(&plain));
    assert!(ours < 0.94 * plain, "{ours:.3} against {plain:.3} in the plain way");
}

#[test]
fn byte_counts_equal_the_format() {
    let values = vec![0.5; 64 * 64];
    let bits = |format| pack(format, 64, 64, &values).unwrap().bytes() as f64 * 8.0 / (64.0 * 64.0);
    assert_eq!(FORMATS.map(bits), [32.0, 16.0, 16.0, 8.5, 5.0], "the scales of a tile fill whole lines");
    let wide = pack(WeightFormat::Q4, 16, 1024, &vec![0.5; 16 * 1024]).unwrap();
    assert_eq!(wide.bytes(), 8192 + 448);
    let odd = pack(WeightFormat::Q4, 17, 33, &values[..17 * 33]).unwrap();
    assert_eq!(odd.bytes(), 2 * (128 + 2 * 256), "two tiles of two groups");
}

#[test]
fn every_instruction_set_packs_the_same() {
    let (rows, cols) = (35, 70);
    let values = Random(22).normal(rows * cols);
    for format in FORMATS {
        let pack_on = |isa: Isa| {
            let mut out = vec![0_u32; format.tile_bytes(cols).unwrap() / 4];
            let out_bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut out);
            let source = Source::F32(&values);
            let done = isa.run(PackTile {
                format,
                source,
                rows,
                cols,
                first_row: 16,
                importance: None,
                out: out_bytes,
            });
            assert!(done.is_ok());
            out
        };
        for &isa in Isa::supported() {
            assert_eq!(pack_on(isa), pack_on(Isa::Scalar), "{format} with {isa}");
        }
    }
}

#[test]
fn every_source_type_packs_the_same() {
    let halves: Vec<f16> = Random(23).normal(20 * 40).into_iter().map(f16::from_f32).collect();
    let singles: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
    let bytes: Vec<u8> = halves.iter().flat_map(|x| x.to_le_bytes()).collect();
    for format in FORMATS {
        let expected = bits(&unpacked(&pack(format, 20, 40, &singles).unwrap()));
        for source in [Source::F16(&halves), Source::from_le_bytes(FloatDtype::F16, &bytes).unwrap()] {
            let packed = PackedMatrix::pack(format, 20, 40, source).unwrap();
            assert_eq!(bits(&unpacked(&packed)), expected, "{packed:?}");
        }
    }
}

#[test]
fn unrepresentable_value_is_reported_with_its_place() {
    let with = |bad: f32| {
        let mut values = vec![0.25; 20 * 70];
        values[18 * 70 + 66] = bad;
        values
    };
    let rejected = [
        (WeightFormat::F16, 1e6_f32),
        (WeightFormat::Bf16, f32::MAX),
        (WeightFormat::Q8, f32::NAN),
        (WeightFormat::Q4, f32::INFINITY),
    ];
    for (format, bad) in rejected {
        match pack(format, 20, 70, &with(bad)) {
            Err(Error::NotRepresentable { row: 18, col: 66, value, format: named }) => {
                assert_eq!((value.to_bits(), named), (bad.to_bits(), format.name()));
            }
            other => panic!("{format} took {bad}: {other:?}"),
        }
    }
    // Non-finite values of a float checkpoint are kept: they show in the results.
    let kept = unpacked(&pack(WeightFormat::Bf16, 20, 70, &with(f32::NEG_INFINITY)).unwrap());
    assert_eq!(kept[18 * 70 + 66], f32::NEG_INFINITY);
}

#[test]
fn wrong_source_length_is_rejected() {
    let error = pack(WeightFormat::F32, 2, 3, &[0.0; 5]).unwrap_err();
    assert_eq!(error.to_string(), "a [2, 3] weight has 6 elements, the source has 5");
    assert!(matches!(pack(WeightFormat::F32, usize::MAX, 2, &[]), Err(Error::ShapeOverflow { .. })));
}

#[test]
fn names_of_formats_round_trip() {
    for format in FORMATS {
        assert_eq!(format.to_string().parse::<WeightFormat>().unwrap(), format);
    }
    assert!("q5".parse::<WeightFormat>().is_err());
}

#[test]
fn elements_of_the_same_type_keep_their_bits() {
    // Full groups and tiles, and partial ones: NaN, infinities and denormals among them.
    for (rows, cols) in [(32, 64), (35, 64), (32, 70)] {
        let bits: Vec<u16> = (0..rows * cols).map(|i| (i * 40_503 % 65_536) as u16).collect();
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        for (format, dtype) in [(WeightFormat::F16, FloatDtype::F16), (WeightFormat::Bf16, FloatDtype::Bf16)]
        {
            let source = Source::from_le_bytes(dtype, &bytes).unwrap();
            let packed = PackedMatrix::pack(format, rows, cols, source).unwrap();
            for (row, bits) in bits.chunks(cols).enumerate() {
                for (col, bits) in bits.iter().enumerate() {
                    let got = packed.columns::<[u16; LANES]>(row / LANES)[col][row % LANES];
                    let is_nan = match dtype {
                        FloatDtype::F16 => f16::from_bits(*bits).is_nan(),
                        _ => bf16::from_bits(*bits).is_nan(),
                    };
                    assert!(got == *bits || is_nan, "{format} [{row}, {col}]: {bits:#x} became {got:#x}");
                }
            }
        }
    }
}
