//! Slices of any length in lanes.

use super::vector::{LANES, Lanes};

/// Dot product of two slices of the same length: element `i` is added to lane `i % 16`.
#[inline(always)]
pub(in crate::host) fn dot<V: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sum = V::splat(0.0);
    for (a, b) in a.iter().zip(b) {
        sum = V::load(a).mul_add(V::load(b), sum);
    }
    if !a_rest.is_empty() {
        sum = V::load(&padded(a_rest)).mul_add(V::load(&padded(b_rest)), sum);
    }
    sum.sum()
}

/// Loads the first sixteen floats, zero-padded if there are fewer.
#[inline(always)]
pub(in crate::host) fn load_part<V: Lanes>(x: &[f32]) -> V {
    match x.first_chunk() {
        Some(x) => V::load(x),
        None => V::load(&padded(x)),
    }
}

/// Stores as many lanes as fit `out`.
#[inline(always)]
pub(in crate::host) fn store_part<V: Lanes>(lanes: V, out: &mut [f32]) {
    if let Some(out) = out.first_chunk_mut() {
        lanes.store(out);
        return;
    }
    let mut all = [0.0; LANES];
    lanes.store(&mut all);
    for (out, lane) in out.iter_mut().zip(&all) {
        *out = *lane;
    }
}

/// Zero-pads the last lanes of a row.
#[inline(always)]
fn padded(x: &[f32]) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    for (out, x) in out.iter_mut().zip(x) {
        *out = *x;
    }
    out
}
