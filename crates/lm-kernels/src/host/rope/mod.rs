//! Rotary position embedding (RoPE).

#[cfg(test)]
mod tests;

use super::isa::Isa;
use super::lanes::{Kernel, Lanes};
use super::pool::Pool;
use super::profile::{self, Work};
use super::split::for_each_chunk;

/// Rows per task.
const ROWS: usize = 8;

/// Rotary frequencies of a model; made from its configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeTable {
    /// Inverse frequencies, radians per position: `rotary_dim / 2` of them, after any scaling.
    pub inv_freq: Vec<f32>,
    /// Attention factor, multiplied into sine and cosine; 1 except with some context-extension methods (YaRN,
    /// LongRoPE).
    pub attention_factor: f32,
}

impl RopeTable {
    /// Computes the unscaled frequencies: pair `i` rotates by `theta^(-2i / rotary_dim)` per position.
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

    /// Number of rotated elements at the start of each head (partial rotary).
    pub fn rotary_dim(&self) -> usize {
        2 * self.inv_freq.len()
    }

    /// Computes sine and cosine of each row, for all layers of a forward pass.
    ///
    /// Angles are products in single precision, as in the reference code; their sine and cosine are taken in
    /// double precision and rounded.
    pub fn angles(&self, positions: &[u32]) -> RopeAngles {
        let positions: Vec<[u32; 3]> = positions.iter().map(|&position| [position; 3]).collect();
        self.angles_by_axis(&positions, &vec![0; self.inv_freq.len()])
    }

    /// Like [`RopeTable::angles`], for rows with a position on each of three axes: pair `i` rotates by that
    /// on axis `axes[i]`. Rows whose three positions are equal get the angles of that one position.
    ///
    /// # Panics
    /// When there is not one axis per pair, or an axis is above 2.
    pub fn angles_by_axis(&self, positions: &[[u32; 3]], axes: &[usize]) -> RopeAngles {
        assert_eq!(axes.len(), self.inv_freq.len(), "one axis a pair");
        let turns = positions.iter().flat_map(|position| {
            let pairs = self.inv_freq.iter().zip(axes);
            pairs.map(move |(inv_freq, &axis)| f64::from(position[axis] as f32 * inv_freq).sin_cos())
        });
        let factor = self.attention_factor;
        let (sin, cos) = turns.map(|(sin, cos)| (sin as f32 * factor, cos as f32 * factor)).unzip();
        RopeAngles {
            rows: positions.len(),
            pairs: self.inv_freq.len(),
            pairing: RopePairing::HalfSplit,
            sin,
            cos,
        }
    }
}

/// Elements of a head that rotate together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RopePairing {
    /// Element `i` of the first half of the rotated part with element `i` of the second.
    #[default]
    HalfSplit,
    /// Element `2i` with element `2i + 1`.
    Adjacent,
}

/// Sines and cosines of the rows of a call, made by [`RopeTable::angles`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeAngles {
    rows: usize,
    pairs: usize,
    pairing: RopePairing,
    sin: Vec<f32>,
    cos: Vec<f32>,
}

impl RopeAngles {
    /// Returns the angles for heads whose elements are paired in another way.
    pub fn with_pairing(self, pairing: RopePairing) -> Self {
        Self { pairing, ..self }
    }

    /// Elements that rotate together; half-split unless set.
    pub fn pairing(&self) -> RopePairing {
        self.pairing
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the rows of other angles.
    ///
    /// # Panics
    /// When both have rows and their rotary dimensions differ.
    pub fn append(&mut self, other: &Self) {
        assert!(self.rows == 0 || other.rows == 0 || self.pairs == other.pairs, "rows of one width");
        self.pairs = self.pairs.max(other.pairs);
        self.rows += other.rows;
        self.sin.extend_from_slice(&other.sin);
        self.cos.extend_from_slice(&other.cos);
    }

    /// Number of rotated elements at the start of each head (partial rotary).
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

/// Applies rotary position embedding to `x` in place, to the pairs of the angles' [`RopePairing`].
///
/// Elements of a head past `rotary_dim` are not changed (partial rotary).
///
/// # Shapes
/// - `x`: `[rows, num_heads, head_dim]`
/// - `angles`: of `rows` absolute positions, counting cached tokens
///
/// # Panics
/// When a length does not fit, or `head_dim` is less than the angles' `rotary_dim`.
///
/// # Source
/// RoFormer, arXiv 2104.09864; layout as in the Llama code of transformers.
pub fn rope(pool: &Pool, x: &mut [f32], head_dim: usize, angles: &RopeAngles) {
    let _span = profile::span(Work::Rows);
    rope_on(Isa::current(), pool, x, head_dim, angles);
}

/// [`rope`] on one instruction set.
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
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let pairs = self.angles.pairs;
        for (index, row) in self.x.chunks_exact_mut(self.width).enumerate() {
            let turns = (self.first + index) * pairs..(self.first + index + 1) * pairs;
            let (sin, cos) = (&self.angles.sin[turns.clone()], &self.angles.cos[turns]);
            for head in row.chunks_exact_mut(self.head_dim) {
                match self.angles.pairing {
                    RopePairing::HalfSplit => {
                        let (first, second) = head.split_at_mut(pairs);
                        for (((a, b), sin), cos) in first.iter_mut().zip(second).zip(sin).zip(cos) {
                            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                        }
                    }
                    RopePairing::Adjacent => {
                        let (pairs, _) = head.as_chunks_mut::<2>();
                        for (([a, b], sin), cos) in pairs.iter_mut().zip(sin).zip(cos) {
                            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                        }
                    }
                }
            }
        }
    }
}
