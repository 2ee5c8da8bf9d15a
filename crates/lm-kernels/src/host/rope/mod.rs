//! Rotary positions.

#[cfg(test)]
mod tests;

use super::cpu::{Isa, Kernel};
use super::lanes::Lanes;
use super::pool::Pool;
use super::split::for_each_chunk;

/// Rows in a task.
const ROWS: usize = 8;

/// How fast each pair of a head turns; made from a model's configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeTable {
    /// Radians per position of each pair: `rotary_dim / 2` of them, after any scaling.
    pub inv_freq: Vec<f32>,
    /// Factor on sine and cosine; 1 but for some ways to stretch the context.
    pub attention_factor: f32,
}

impl RopeTable {
    /// The table without any scaling: pair `i` turns by `theta^(-2i / rotary_dim)` per position.
    ///
    /// # Panics
    /// When `rotary_dim` is odd.
    pub fn new(theta: f64, rotary_dim: usize) -> Self {
        assert!(rotary_dim.is_multiple_of(2), "an even number of values is rotated, not {rotary_dim}");
        let inv_freq = (0..rotary_dim / 2)
            .map(|pair| theta.powf(-2.0 * pair as f64 / rotary_dim as f64) as f32)
            .collect();
        Self { inv_freq, attention_factor: 1.0 }
    }

    /// How many values at the start of each head are rotated.
    pub fn rotary_dim(&self) -> usize {
        2 * self.inv_freq.len()
    }

    /// How far each row turns, for all layers of a forward pass.
    ///
    /// Angles are products in single precision, as in the reference code; their sine and cosine are taken in double
    /// precision and rounded.
    pub fn angles(&self, positions: &[u32]) -> RopeAngles {
        let turns = positions.iter().flat_map(|&position| {
            self.inv_freq.iter().map(move |inv_freq| f64::from(position as f32 * inv_freq).sin_cos())
        });
        let factor = self.attention_factor;
        let (sin, cos) = turns.map(|(sin, cos)| (sin as f32 * factor, cos as f32 * factor)).unzip();
        RopeAngles { rows: positions.len(), pairs: self.inv_freq.len(), sin, cos }
    }
}

/// Sines and cosines of the rows of a call, made by [`RopeTable::angles`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeAngles {
    rows: usize,
    pairs: usize,
    sin: Vec<f32>,
    cos: Vec<f32>,
}

impl RopeAngles {
    /// How many rows they are for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of other angles after these.
    ///
    /// # Panics
    /// When both have rows and rotate different numbers of values.
    pub fn append(&mut self, other: &Self) {
        assert!(self.rows == 0 || other.rows == 0 || self.pairs == other.pairs, "rows of one width");
        self.pairs = self.pairs.max(other.pairs);
        self.rows += other.rows;
        self.sin.extend_from_slice(&other.sin);
        self.cos.extend_from_slice(&other.cos);
    }

    /// How many values at the start of each head are rotated.
    pub fn rotary_dim(&self) -> usize {
        2 * self.pairs
    }

    /// Sines, times the attention factor: `[rows, rotary_dim / 2]`.
    pub fn sin(&self) -> &[f32] {
        &self.sin
    }

    /// Cosines, times the attention factor: `[rows, rotary_dim / 2]`.
    pub fn cos(&self) -> &[f32] {
        &self.cos
    }
}

/// Rotates `x` in place by absolute position (RoPE, half-split layout: value `i` turns with value `i + rotary_dim / 2`).
///
/// Values of a head past `rotary_dim` stay as they are.
///
/// # Shapes
/// - `x`: `[rows, num_heads, head_dim]`
/// - `angles`: of `rows` positions, the cache's included
///
/// # Panics
/// When a length does not fit, or `head_dim` is less than the angles' `rotary_dim`.
///
/// # Source
/// RoFormer, arXiv 2104.09864; layout as in the Llama code of transformers.
pub fn rope(pool: &Pool, x: &mut [f32], head_dim: usize, angles: &RopeAngles) {
    rope_on(Isa::current(), pool, x, head_dim, angles);
}

/// [`rope`] with the code for one instruction set.
fn rope_on(isa: Isa, pool: &Pool, x: &mut [f32], head_dim: usize, angles: &RopeAngles) {
    if angles.rows == 0 || angles.pairs == 0 {
        return;
    }
    assert!(x.len().is_multiple_of(angles.rows * head_dim), "[{}, heads, {head_dim}]", angles.rows);
    assert!(angles.rotary_dim() <= head_dim, "{} of {head_dim} values", angles.rotary_dim());
    let width = x.len() / angles.rows;
    for_each_chunk(pool, x, ROWS * width, |index, x| {
        isa.run(Rotate { x, head_dim, width, first: index * ROWS, angles });
    });
}

struct Rotate<'a> {
    x: &'a mut [f32],
    head_dim: usize,
    width: usize,
    first: usize,
    angles: &'a RopeAngles,
}

impl Kernel for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let pairs = self.angles.pairs;
        for (index, row) in self.x.chunks_exact_mut(self.width).enumerate() {
            let turns = (self.first + index) * pairs..(self.first + index + 1) * pairs;
            let (sin, cos) = (&self.angles.sin[turns.clone()], &self.angles.cos[turns]);
            for head in row.chunks_exact_mut(self.head_dim) {
                let (first, second) = head.split_at_mut(pairs);
                for (((a, b), sin), cos) in first.iter_mut().zip(second).zip(sin).zip(cos) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
        }
    }
}
