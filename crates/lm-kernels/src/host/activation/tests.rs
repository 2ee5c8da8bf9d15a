//! `swiglu` against the definition in double precision.

use super::super::testing::{Random, bits};
use super::*;

#[test]
fn values_are_those_of_the_definition_on_every_instruction_set() {
    let mut random = Random(41);
    let len = 2 * ELEMENTS + 77;
    let mut gate: Vec<f32> = random.normal(len).iter().map(|x| x * 8.0).collect();
    gate[..6].copy_from_slice(&[0.0, -0.0, 90.0, -90.0, 1e30, -1e30]);
    let up = random.normal(len);
    let mut reference = vec![f32::NAN; len];
    swiglu_on(Isa::Scalar, &Pool::new(1), &gate, &up, &mut reference);
    for ((gate, up), y) in gate.iter().zip(&up).zip(&reference) {
        let exact = f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
        let error = (f64::from(*y) - exact).abs();
        assert!(error <= 1e-6 * exact.abs() + 1e-30, "silu({gate}) · {up} is {y}, not {exact}");
    }
    for &isa in Isa::supported() {
        let mut y = vec![f32::NAN; len];
        swiglu_on(isa, &Pool::new(3), &gate, &up, &mut y);
        assert_eq!(bits(&y), bits(&reference), "{isa}");
    }
}

#[test]
fn what_is_no_number_stays_none() {
    let mut y = [0.0; 2];
    swiglu(&Pool::new(1), &[f32::NAN, 1.0], &[1.0, f32::NAN], &mut y);
    assert!(y[0].is_nan() && y[1].is_nan());
}
