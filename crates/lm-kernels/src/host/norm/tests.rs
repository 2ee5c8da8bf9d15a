//! `rms_norm` and `layer_norm` against loops in double precision.

use super::super::testing::{Random, bits};
use super::*;

#[test]
fn rows_equal_the_definition_on_every_isa() {
    let mut random = Random(31);
    for (rows, width) in [(1, 1), (3, 7), (40, 16), (17, 100), (2, 1000)] {
        let (x, weight) = (random.normal(rows * width), random.normal(width));
        let mut reference = vec![f32::NAN; x.len()];
        rms_norm_on(Isa::Scalar, &Pool::new(1), &x, Norm { weight: &weight, eps: 1e-5 }, &mut reference);
        for (x, y) in x.chunks(width).zip(reference.chunks(width)) {
            let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / width as f64;
            for ((x, weight), y) in x.iter().zip(&weight).zip(y) {
                let exact = f64::from(*x) / (mean + 1e-5).sqrt() * f64::from(*weight);
                assert!(
                    (f64::from(*y) - exact).abs() <= 1e-6 * exact.abs(),
                    "[{rows}, {width}]: {y}, not {exact}"
                );
            }
        }
        for &isa in Isa::supported() {
            let mut y = vec![f32::NAN; x.len()];
            rms_norm_on(isa, &Pool::new(3), &x, Norm { weight: &weight, eps: 1e-5 }, &mut y);
            assert_eq!(bits(&y), bits(&reference), "[{rows}, {width}] with {isa}");
        }
    }
}

#[test]
fn row_of_zeros_stays_zeros() {
    let mut y = [1.0; 4];
    rms_norm(&Pool::new(1), &[0.0; 4], &[1.0; 4], 1e-6, &mut y);
    assert_eq!(y, [0.0; 4]);
}

#[test]
fn centred_rows_equal_the_definition_on_every_isa() {
    let mut random = Random(32);
    for (rows, width) in [(1, 1), (3, 7), (40, 16), (17, 100), (2, 1000)] {
        // Far from zero, so that the mean matters.
        let x: Vec<f32> = random.normal(rows * width).iter().map(|x| 5.0 + x).collect();
        let (weight, bias) = (random.normal(width), random.normal(width));
        let norm = LayerNorm { weight: &weight, bias: &bias, eps: 1e-5 };
        let mut reference = vec![f32::NAN; x.len()];
        layer_norm_on(Isa::Scalar, &Pool::new(1), &x, norm, &mut reference);
        for (x, y) in x.chunks(width).zip(reference.chunks(width)) {
            let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64;
            let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / width as f64;
            for (((x, weight), bias), y) in x.iter().zip(&weight).zip(&bias).zip(y) {
                let normed = (f64::from(*x) - mean) / (variance + 1e-5).sqrt();
                let exact = normed * f64::from(*weight) + f64::from(*bias);
                assert!((f64::from(*y) - exact).abs() <= 1e-5, "[{rows}, {width}]: {y}, not {exact}");
            }
        }
        for &isa in Isa::supported() {
            let mut y = vec![f32::NAN; x.len()];
            layer_norm_on(isa, &Pool::new(3), &x, norm, &mut y);
            assert_eq!(bits(&y), bits(&reference), "[{rows}, {width}] with {isa}");
        }
    }
}

#[test]
fn epsilon_is_added_to_the_variance() {
    let mut y = [0.0; 2];
    let norm = LayerNorm { weight: &[1.0; 2], bias: &[0.0; 2], eps: 3.0 };
    layer_norm(&Pool::new(1), &[-1.0, 1.0], norm, &mut y);
    assert_eq!(y, [-0.5, 0.5]);
}
