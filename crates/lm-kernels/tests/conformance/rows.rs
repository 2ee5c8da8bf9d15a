//! Row-wise operations.

use std::sync::Arc;

use lm_kernels::{RopePairing, RopeTable, from_host, glu, layer_norm, rms_norm, rope, to_host};

use super::{ACTIVATIONS, Random, Target, assert_close, gate as gate_by};

pub fn check_rms_norm(target: &Target) {
    let mut random = Random::new(1);
    for (rows, size) in [(1, 1), (1, 64), (3, 7), (5, 128), (17, 100), (2, 1536)] {
        for (scale, eps) in [(1.0, 1e-6), (1e-3, 1e-5), (100.0, 1e-6)] {
            let x = random.values(rows * size, scale);
            let weight = random.values(size, 2.0);
            let got = rms_norm(
                from_host(x.clone(), [rows, size], &target.burn),
                from_host(weight.clone(), [size], &target.burn),
                eps,
            );
            let mut expected = Vec::new();
            for row in x.chunks(size) {
                let square: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
                let root = (square / size as f64 + f64::from(eps)).sqrt();
                expected.extend(row.iter().zip(&weight).map(|(&x, &w)| f64::from(x) / root * f64::from(w)));
            }
            let what = format!("rms_norm [{rows}, {size}] · {scale} on {}", target.device);
            let got = to_host(got).unwrap();
            assert_close(&what, &got, &expected, |i| 3e-6 * expected[i].abs().max(1e-3));
        }
    }
}

pub fn check_layer_norm(target: &Target) {
    let mut random = Random::new(4);
    for (rows, size) in [(1, 2), (1, 64), (3, 7), (5, 128), (17, 100), (2, 1152)] {
        for (scale, shift, eps) in [(1.0, 0.0, 1e-6), (1e-3, 0.0, 1e-5), (2.0, 30.0, 1e-6)] {
            let x: Vec<f32> = random.values(rows * size, scale).iter().map(|x| x + shift).collect();
            let [weight, bias] = [random.values(size, 2.0), random.values(size, 1.0)];
            let got = layer_norm(
                from_host(x.clone(), [rows, size], &target.burn),
                from_host(weight.clone(), [size], &target.burn),
                from_host(bias.clone(), [size], &target.burn),
                eps,
            );
            let mut expected = Vec::new();
            for row in x.chunks(size) {
                let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / size as f64;
                let square: f64 = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
                let root = (square / size as f64 + f64::from(eps)).sqrt();
                let column = |((x, w), b): ((&f32, &f32), &f32)| {
                    (f64::from(*x) - mean) / root * f64::from(*w) + f64::from(*b)
                };
                expected.extend(row.iter().zip(&weight).zip(&bias).map(column));
            }
            let what = format!("layer_norm [{rows}, {size}] · {scale} + {shift} on {}", target.device);
            let got = to_host(got).unwrap();
            // The mean is rounded to an f32, which two columns of nearly one value show most.
            assert_close(&what, &got, &expected, |_| 2e-5 * (1.0 + f64::from(shift) * 10.0));
        }
    }
}

pub fn check_glu(target: &Target) {
    let mut random = Random::new(2);
    for activation in ACTIVATIONS {
        for (rows, size) in [(1, 1), (1, 96), (4, 33), (9, 256)] {
            for scale in [0.1, 4.0, 60.0] {
                let (gate, up) = (random.values(rows * size, scale), random.values(rows * size, 3.0));
                let got = glu(
                    from_host(gate.clone(), [rows, size], &target.burn),
                    from_host(up.clone(), [rows, size], &target.burn),
                    activation,
                );
                let gated = |(&gate, &up): (&f32, &f32)| gate_by(activation, gate.into(), up.into());
                let expected: Vec<f64> = gate.iter().zip(&up).map(gated).collect();
                let what = format!("glu by {activation:?} [{rows}, {size}] · {scale} on {}", target.device);
                let got = to_host(got).unwrap();
                // Far below zero the exponential carries the error of its argument: 60 · 2^-24, doubled.
                assert_close(&what, &got, &expected, |i| 1e-5 * expected[i].abs() + 1e-6);
            }
        }
    }
}

pub fn check_rope(target: &Target) {
    let mut random = Random::new(3);
    // head_dim, rotated elements, theta, factor
    let tables =
        [(8, 8, 1e4, 1.0), (64, 64, 1e6, 1.0), (128, 128, 5e5, 1.0), (20, 12, 1e4, 1.0), (32, 32, 1e4, 1.21)];
    for (head_dim, rotary_dim, theta, attention_factor) in tables {
        let frequency = |pair: usize| f64::powf(theta, -2.0 * pair as f64 / rotary_dim as f64) as f32;
        let inv_freq: Vec<f32> = (0..rotary_dim / 2).map(frequency).collect();
        let table = Arc::new(RopeTable { inv_freq, attention_factor });
        let sizes = [(1, 1, 1), (7, 3, 50), (4, 8, 131_072)];
        let cases =
            sizes.map(|size| [RopePairing::HalfSplit, RopePairing::Adjacent].map(|pairs| (size, pairs)));
        for ((rows, heads, last), pairing) in cases.into_iter().flatten() {
            let x = random.values(rows * heads * head_dim, 2.0);
            let positions: Arc<[u32]> = (0..rows).map(|_| random.between(0, last) as u32).collect();
            let input = from_host(x.clone(), [rows, heads, head_dim], &target.burn);
            let angles = Arc::new(table.angles(&positions).with_pairing(pairing));
            let got = to_host(rope(input, &angles)).unwrap();
            let mut expected: Vec<f64> = x.iter().map(|&x| x.into()).collect();
            for (head, values) in expected.chunks_mut(head_dim).enumerate() {
                rotate(values, positions[head / heads], &table, pairing);
            }
            let what = format!(
                "rope [{rows}, {heads}, {head_dim}], {rotary_dim} rotated, {pairing:?}, on {}",
                target.device
            );
            assert_close(&what, &got, &expected, |_| 1e-6 * 4.0);
        }
    }
}

/// Rotates one head in place; the product of position and frequency is an f32, as the operation's
/// documentation says.
fn rotate(head: &mut [f64], position: u32, table: &RopeTable, pairing: RopePairing) {
    let half = table.inv_freq.len();
    for pair in 0..half {
        let angle = f64::from(position as f32 * table.inv_freq[pair]);
        let factor = f64::from(table.attention_factor);
        let (sin, cos) = (angle.sin() * factor, angle.cos() * factor);
        let [i, j] = match pairing {
            RopePairing::HalfSplit => [pair, pair + half],
            RopePairing::Adjacent => [2 * pair, 2 * pair + 1],
        };
        (head[i], head[j]) = (head[i] * cos - head[j] * sin, head[j] * cos + head[i] * sin);
    }
}
