//! Weights in every format: products and lookups.

use std::sync::Arc;

use lm_kernels::{
    Device, PackedMatrix, Source, Weight, WeightFormat, batched_linear, embedding, from_host, linear, to_host,
};

use super::{Random, Target, assert_close};

const FORMATS: [WeightFormat; 5] =
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];

/// A weight on the target and its dequantised values, `[rows, cols]`.
fn weight(
    target: &Target,
    format: WeightFormat,
    rows: usize,
    cols: usize,
    random: &mut Random,
) -> (Weight, Vec<f32>) {
    let values = random.values(rows * cols, 1.0);
    let packed = PackedMatrix::pack(format, rows, cols, Source::F32(&values)).unwrap();
    let mut meant = vec![0.0; rows * cols];
    for (row, meant) in meant.chunks_mut(cols).enumerate() {
        packed.dequantize_row(row, meant);
    }
    for (index, (&value, &meant)) in values.iter().zip(&meant).enumerate() {
        let allowed = step(format);
        assert!((value - meant).abs() <= allowed, "{format}: element {index} is {meant}, was {value}");
    }
    let weight = Weight::load(target.device, format, rows, cols, Source::F32(&values)).unwrap();
    (weight, meant)
}

/// Maximum error of packing a value below 1: half a step of the format; the 4-bit scale search clips the ends
/// of its range, by two steps at most.
fn step(format: WeightFormat) -> f32 {
    match format {
        WeightFormat::F32 => 0.0,
        WeightFormat::F16 => 2f32.powi(-12),
        WeightFormat::Bf16 => 2f32.powi(-9),
        WeightFormat::Q8 => 0.506 / 127.0,
        WeightFormat::Q4 => 2.0 / 9.0,
        WeightFormat::Ggml(_) => panic!("floats are not packed to {format}"),
    }
}

pub fn check(target: &Target) {
    let mut random = Random::new(4);
    for format in FORMATS {
        for (rows, cols) in [(1, 32), (5, 64), (16, 32), (33, 96), (7, 40), (130, 256), (64, 320)] {
            for m in [1, 2, 5, 19] {
                let (weight, meant) = weight(target, format, rows, cols, &mut random);
                let x = random.values(m * cols, 3.0);
                let got = linear(from_host(x.clone(), [m, cols], &target.burn), &weight);
                assert_eq!(got.dims(), [m, rows]);
                let got = to_host(got).unwrap();
                let (expected, tolerance) = product(&x, &meant, cols, |row| seen(target, format, row));
                let what = format!("linear {format} [{m}, {cols}] · [{rows}, {cols}]ᵀ on {}", target.device);
                assert_close(&what, &got, &expected, |i| tolerance[i]);
            }
        }
    }
}

/// Matrices whose borders fall within tiles and on them.
pub fn check_batched(target: &Target) {
    let mut random = Random::new(6);
    for format in FORMATS {
        for (count, out, cols, m) in
            [(1, 16, 32, 3), (4, 5, 64, 1), (3, 32, 40, 2), (7, 9, 96, 19), (16, 24, 256, 1)]
        {
            let (weight, meant) = weight(target, format, count * out, cols, &mut random);
            let x = random.values(count * m * cols, 3.0);
            let got = batched_linear(from_host(x.clone(), [count, m, cols], &target.burn), &weight);
            assert_eq!(got.dims(), [count, m, out]);
            let parts = x.chunks(m * cols).zip(meant.chunks(out * cols));
            let products = parts.map(|(x, meant)| product(x, meant, cols, |row| seen(target, format, row)));
            let (expected, tolerance): (Vec<_>, Vec<_>) = products.unzip();
            let (expected, tolerance) = (expected.concat(), tolerance.concat());
            let shape = format!("[{count}, {m}, {cols}] · [{count}, {out}, {cols}]ᵀ");
            let what = format!("batched_linear {format} {shape} on {}", target.device);
            assert_close(&what, &to_host(got).unwrap(), &expected, |i| tolerance[i]);
        }
    }
}

/// The row as the kernel multiplies it: on the host in the Q formats each block is quantised to 8-bit
/// integers, which other devices do not do.
fn seen(target: &Target, format: WeightFormat, row: &[f32]) -> Vec<f64> {
    let on_host = matches!(target.device, Device::Cpu | Device::NdArray);
    match format {
        WeightFormat::Q8 if on_host => row.chunks(64).flat_map(quantise).collect(),
        WeightFormat::Q4 if on_host => row.chunks(256).flat_map(quantise).collect(),
        _ => row.iter().map(|&x| x.into()).collect(),
    }
}

fn quantise(block: &[f32]) -> Vec<f64> {
    let largest = block.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let scale = largest / 127.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    block.iter().map(|x| f64::from((x * inverse).round_ties_even()) * f64::from(scale)).collect()
}

/// `x · wᵀ`, and for each element the error bound of a sum of `cols` f32 products.
fn product(x: &[f32], w: &[f32], cols: usize, seen: impl Fn(&[f32]) -> Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let (mut products, mut tolerances) = (Vec::new(), Vec::new());
    for x in x.chunks(cols).map(seen) {
        for w in w.chunks(cols) {
            let terms = || x.iter().zip(w).map(|(x, &w)| x * f64::from(w));
            products.push(terms().sum());
            tolerances.push(1e-6 * terms().map(f64::abs).sum::<f64>() + 1e-6);
        }
    }
    (products, tolerances)
}

pub fn check_embedding(target: &Target) {
    let mut random = Random::new(5);
    for format in FORMATS {
        for (rows, cols) in [(1, 32), (50, 64), (7, 40), (257, 96)] {
            let (weight, meant) = weight(target, format, rows, cols, &mut random);
            for count in [1, 6] {
                let ids: Vec<u32> = (0..count).map(|_| random.between(0, rows) as u32).collect();
                let got = to_host(embedding(&weight, &ids, &target.burn)).unwrap();
                let row = |&id: &u32| meant[id as usize * cols..(id as usize + 1) * cols].to_vec();
                let expected: Vec<f32> = ids.iter().flat_map(row).collect();
                assert_eq!(got, expected, "embedding {format} [{rows}, {cols}] on {}", target.device);
            }
        }
    }
}

/// Memory size of each format, by device: packed formats stay packed.
#[test]
fn weights_are_resident_in_their_format() {
    let (rows, cols) = (64, 256);
    let values = vec![0.25; rows * cols];
    for &device in Device::available() {
        if device.burn().is_err() {
            println!("skipped: resident size on {device}: no adapter");
            continue;
        }
        for (format, bits) in [(WeightFormat::Q8, 8.0), (WeightFormat::Q4, 4.0)] {
            let weight = Weight::load(device, format, rows, cols, Source::F32(&values)).unwrap();
            let per_weight = weight.bytes() as f64 * 8.0 / (rows * cols) as f64;
            // A scale in f16, or in f32 on devices without f16, for each block of 32.
            assert!(per_weight > bits && per_weight <= bits + 1.0, "{format} on {device}: {per_weight} bits");
        }
    }
}

#[test]
fn packed_matrix_is_not_copied() {
    let packed = Arc::new(PackedMatrix::pack(WeightFormat::Q8, 4, 32, Source::F32(&[0.5; 128])).unwrap());
    let weight = Weight::from(packed.clone());
    let _again = weight.clone();
    assert_eq!(Arc::strong_count(&packed), 3);
    assert_eq!(weight.bytes(), packed.bytes());
}
