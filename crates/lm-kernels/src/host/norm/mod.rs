//! Row normalisation (RMSNorm, LayerNorm).

#[cfg(test)]
mod tests;

use super::isa::Isa;
use super::lanes::{Kernel, LANES, Lanes, dot, load_part};
use super::pool::Pool;
use super::profile::{self, Work};
use super::split::for_each_chunk;

/// Rows per task.
const ROWS: usize = 16;

/// RMSNorm parameters, for a norm fused into another operation.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// Weight of each column; as long as a row.
    pub weight: &'a [f32],
    /// Epsilon, added to the mean of the squares.
    pub eps: f32,
}

/// Divides each row by its root mean square and multiplies it by `weight` (RMSNorm):
/// `y = x / sqrt(mean(x²) + eps) · weight`.
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`; `y` is overwritten
/// - `weight`: `[width]`
///
/// # Panics
/// When `weight` is empty, or a length does not fit.
///
/// # Source
/// Root Mean Square Layer Normalization, arXiv 1910.07467.
///
/// # Examples
/// ```
/// let mut y = [0.0; 2];
/// lm_kernels::host::rms_norm(lm_kernels::Pool::global(), &[3.0, 3.0], &[1.0, 2.0], 0.0, &mut y);
/// assert_eq!(y, [1.0, 2.0]);
/// ```
pub fn rms_norm(pool: &Pool, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    assert!(!weight.is_empty(), "a row has elements");
    let _span = profile::span(Work::Rows);
    rms_norm_on(Isa::current(), pool, x, Norm { weight, eps }, y);
}

/// [`rms_norm`] on one instruction set.
pub(super) fn rms_norm_on(isa: Isa, pool: &Pool, x: &[f32], norm: Norm<'_>, y: &mut [f32]) {
    let width = norm.weight.len();
    assert!(x.len().is_multiple_of(width), "{} elements in rows of {width}", x.len());
    assert_eq!(x.len(), y.len(), "as many results as inputs");
    for_each_chunk(pool, y, ROWS * width, |index, y| {
        let start = index * ROWS * width;
        isa.run(Rows { x: &x[start..start + y.len()], norm, y });
    });
}

struct Rows<'a> {
    x: &'a [f32],
    norm: Norm<'a>,
    y: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let width = self.norm.weight.len();
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            norm_row::<V>(x, &self.norm, y);
        }
    }
}

/// Normalises one row.
#[inline(always)]
pub(super) fn norm_row<V: Lanes>(x: &[f32], norm: &Norm<'_>, y: &mut [f32]) {
    let scale = 1.0 / (dot::<V>(x, x) / x.len() as f32 + norm.eps).sqrt();
    for ((x, weight), y) in x.iter().zip(norm.weight).zip(y) {
        *y = x * scale * weight;
    }
}

/// Parameters of a LayerNorm.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm<'a> {
    /// Factor on each column; as long as a row.
    pub weight: &'a [f32],
    /// Summand of each column.
    pub bias: &'a [f32],
    /// Epsilon, added to the variance.
    pub eps: f32,
}

/// Subtracts its mean from each row, divides it by its standard deviation and maps each column linearly
/// (LayerNorm): `y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias`, with the variance of the whole row,
/// not of a sample.
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`; `y` is overwritten
///
/// # Panics
/// When the weight is empty, or a length does not fit.
///
/// # Source
/// Layer Normalization, arXiv 1607.06450.
///
/// # Examples
/// ```
/// use lm_kernels::host::{LayerNorm, layer_norm};
/// let mut y = [0.0; 2];
/// let norm = LayerNorm { weight: &[1.0, 2.0], bias: &[0.0, 10.0], eps: 0.0 };
/// layer_norm(lm_kernels::Pool::global(), &[3.0, 5.0], norm, &mut y);
/// assert_eq!(y, [-1.0, 12.0]);
/// ```
pub fn layer_norm(pool: &Pool, x: &[f32], norm: LayerNorm<'_>, y: &mut [f32]) {
    let _span = profile::span(Work::Rows);
    layer_norm_on(Isa::current(), pool, x, norm, y);
}

/// [`layer_norm`] on one instruction set.
fn layer_norm_on(isa: Isa, pool: &Pool, x: &[f32], norm: LayerNorm<'_>, y: &mut [f32]) {
    let width = norm.weight.len();
    assert!(width > 0, "a row has elements");
    assert_eq!(norm.bias.len(), width, "a bias for each column");
    assert!(x.len().is_multiple_of(width), "{} elements in rows of {width}", x.len());
    assert_eq!(x.len(), y.len(), "as many results as inputs");
    for_each_chunk(pool, y, ROWS * width, |index, y| {
        let start = index * ROWS * width;
        isa.run(CentredRows { x: &x[start..start + y.len()], norm, y });
    });
}

struct CentredRows<'a> {
    x: &'a [f32],
    norm: LayerNorm<'a>,
    y: &'a mut [f32],
}

impl Kernel for CentredRows<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let LayerNorm { weight, bias, eps } = self.norm;
        let width = weight.len();
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            let mean = total::<V>(x) / width as f32;
            for (x, y) in x.iter().zip(y.iter_mut()) {
                *y = x - mean;
            }
            let scale = 1.0 / (dot::<V>(y, y) / width as f32 + eps).sqrt();
            for ((weight, bias), y) in weight.iter().zip(bias).zip(y) {
                *y = *y * scale * weight + bias;
            }
        }
    }
}

/// Sum of a slice: element `i` is added to lane `i % 16`.
#[inline(always)]
fn total<V: Lanes>(x: &[f32]) -> f32 {
    let mut sum = V::splat(0.0);
    for x in x.chunks(LANES) {
        sum = load_part::<V>(x).mul_add(V::splat(1.0), sum);
    }
    sum.sum()
}
