//! `rope` against the definition in double precision.

use super::super::testing::{Random, bits};
use super::*;

/// The definition: a pair is a complex number that is rotated.
fn expected(x: &[f32], position: u32, table: &RopeTable, pairing: RopePairing) -> Vec<f64> {
    let pairs = table.inv_freq.len();
    let mut out: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    for (i, inv_freq) in table.inv_freq.iter().enumerate() {
        let (sin, cos) = (f64::from(position) * f64::from(*inv_freq)).sin_cos();
        let [first, second] = match pairing {
            RopePairing::HalfSplit => [i, i + pairs],
            RopePairing::Adjacent => [2 * i, 2 * i + 1],
        };
        let (a, b) = (f64::from(x[first]), f64::from(x[second]));
        out[first] = (a * cos - b * sin) * f64::from(table.attention_factor);
        out[second] = (b * cos + a * sin) * f64::from(table.attention_factor);
    }
    out
}

#[test]
fn heads_rotate_as_defined_on_every_isa() {
    let mut random = Random(51);
    let shapes = [(1, 2, 2, 1.0), (3, 64, 64, 1.0), (2, 20, 12, 1.25)];
    let pairings = [RopePairing::HalfSplit, RopePairing::Adjacent];
    let cases = shapes.iter().flat_map(|shape| pairings.map(|pairing| (*shape, pairing)));
    for ((heads, head_dim, rotary_dim, factor), pairing) in cases {
        let table = RopeTable { attention_factor: factor, ..RopeTable::new(10_000.0, rotary_dim) };
        let positions: Vec<u32> = (0..21).map(|row| row * row * 3).collect();
        let x = random.normal(positions.len() * heads * head_dim);
        let mut reference = x.clone();
        let angles = table.angles(&positions).with_pairing(pairing);
        rope_on(Isa::Scalar, &Pool::new(1), &mut reference, head_dim, &angles);
        for (index, (x, y)) in x.chunks(head_dim).zip(reference.chunks(head_dim)).enumerate() {
            let position = positions[index / heads];
            for (y, exact) in y.iter().zip(expected(x, position, &table, pairing)) {
                // Angles are rounded to single precision, so that the error grows with the position.
                let tolerance = 1e-6 + 3e-7 * f64::from(position);
                assert!((f64::from(*y) - exact).abs() < tolerance, "position {position}: {y}, not {exact}");
            }
        }
        for &isa in Isa::supported() {
            let mut y = x.clone();
            rope_on(isa, &Pool::new(3), &mut y, head_dim, &angles);
            assert_eq!(bits(&y), bits(&reference), "{isa}");
        }
    }
}

#[test]
fn position_zero_and_an_empty_table_change_nothing() {
    let x = Random(52).normal(8);
    let mut y = x.clone();
    rope(&Pool::new(1), &mut y, 4, &RopeTable::new(10_000.0, 4).angles(&[0, 0]));
    assert_eq!(y, x);
    rope(&Pool::new(1), &mut y, 4, &RopeTable::default().angles(&[5, 6]));
    assert_eq!(y, x);
}

#[test]
fn table_angles_are_powers_of_theta() {
    assert_eq!(RopeTable::new(100.0, 4).inv_freq, [1.0, 0.1]);
}

#[test]
fn pairs_rotate_by_the_position_on_their_axis() {
    let table = RopeTable { attention_factor: 1.25, ..RopeTable::new(10_000.0, 6) };
    let by_axis = table.angles_by_axis(&[[3, 40, 500], [7, 7, 7]], &[2, 0, 1]);
    let plain = table.angles(&[500, 3, 40, 7]);
    for (by_axis, plain) in [(by_axis.sin(), plain.sin()), (by_axis.cos(), plain.cos())] {
        assert_eq!(by_axis, [&[plain[0], plain[4], plain[8]], &plain[9..]].concat());
    }
}

#[test]
fn angles_are_products_in_single_precision() {
    let (table, position) = (RopeTable::new(10_000.0, 64), 1_000_003_u32);
    let angles = table.angles(&[position]);
    for ((inv_freq, sin), cos) in table.inv_freq.iter().zip(angles.sin()).zip(angles.cos()) {
        let angle = f64::from(position as f32 * inv_freq);
        assert_eq!((*sin, *cos), (angle.sin() as f32, angle.cos() as f32));
    }
}

#[test]
fn appended_angles_equal_those_of_all_rows() {
    let table = RopeTable::new(10_000.0, 6);
    let mut angles = RopeAngles::default();
    angles.append(&table.angles(&[3, 1]));
    angles.append(&table.angles(&[70]));
    assert_eq!(angles, table.angles(&[3, 1, 70]));
}
