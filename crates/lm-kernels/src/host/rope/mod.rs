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
}

/// Rotates `x` in place by absolute position (RoPE, half-split layout: value `i` turns with value `i + rotary_dim / 2`).
///
/// Values of a head past `rotary_dim` stay as they are. Angles are products in single precision, as in the reference code;
/// their sine and cosine are taken in double precision and rounded.
///
/// # Shapes
/// - `x`: `[rows, num_heads, head_dim]`
/// - `positions`: `[rows]`, zero-based, cache included
///
/// # Panics
/// When a length does not fit, or `head_dim` is less than the table's `rotary_dim`.
///
/// # Source
/// RoFormer, arXiv 2104.09864; layout as in the Llama code of transformers.
pub fn rope(pool: &Pool, x: &mut [f32], head_dim: usize, positions: &[u32], table: &RopeTable) {
    rope_on(Isa::current(), pool, x, head_dim, positions, table);
}

/// [`rope`] with the code for one instruction set.
fn rope_on(isa: Isa, pool: &Pool, x: &mut [f32], head_dim: usize, positions: &[u32], table: &RopeTable) {
    if positions.is_empty() || table.inv_freq.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(positions.len() * head_dim), "[{}, heads, {head_dim}]", positions.len());
    assert!(table.rotary_dim() <= head_dim, "{} of {head_dim} values", table.rotary_dim());
    let width = x.len() / positions.len();
    for_each_chunk(pool, x, ROWS * width, |index, x| {
        let positions = &positions[index * ROWS..index * ROWS + x.len() / width];
        isa.run(Rotate { x, head_dim, positions, table });
    });
}

struct Rotate<'a> {
    x: &'a mut [f32],
    head_dim: usize,
    positions: &'a [u32],
    table: &'a RopeTable,
}

impl Kernel for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let width = self.x.len() / self.positions.len();
        let pairs = self.table.inv_freq.len();
        let (mut sin, mut cos) = (vec![0.0; pairs], vec![0.0; pairs]);
        for (row, &position) in self.x.chunks_exact_mut(width).zip(self.positions) {
            self.table.turn(position, &mut sin, &mut cos);
            for head in row.chunks_exact_mut(self.head_dim) {
                let (first, second) = head.split_at_mut(pairs);
                for (((a, b), sin), cos) in first.iter_mut().zip(second).zip(&sin).zip(&cos) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
        }
    }
}

impl RopeTable {
    /// Sine and cosine of each pair at a position, times the attention factor.
    fn turn(&self, position: u32, sin: &mut [f32], cos: &mut [f32]) {
        for ((inv_freq, sin), cos) in self.inv_freq.iter().zip(sin).zip(cos) {
            let angle = f64::from(position as f32 * inv_freq);
            *sin = angle.sin() as f32 * self.attention_factor;
            *cos = angle.cos() as f32 * self.attention_factor;
        }
    }
}
