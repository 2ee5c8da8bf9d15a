//! Activations of gated MLPs (GLU variants).

#![allow(clippy::needless_range_loop, reason = "plain loops are compiled for the registers of the path")]

#[cfg(test)]
mod tests;

use super::isa::Isa;
use super::lanes::{Kernel, LANES, Lanes, exp};
use super::pool::Pool;
use super::profile::{self, Work};
use super::split::for_each_chunk;

/// Elements per task.
const ELEMENTS: usize = 4096;

/// Activation function of a gated MLP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    /// `x / (1 + e^-x)`; SwiGLU.
    Silu,
    /// Exact GELU, `x · Φ(x)` with the normal distribution function (`gelu` of transformers).
    Gelu,
    /// The tanh approximation of GELU, `x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`; GeGLU.
    GeluTanh,
    /// GPT-OSS: `gate · σ(alpha · gate) · (up + 1)`, with `gate` clamped to at most `limit` and `up` to
    /// `-limit..=limit`.
    ClampedSwiglu {
        /// Slope of the sigmoid; 1.702 in the published models.
        alpha: f32,
        /// Clamping limit of the inputs; 7 in the published models.
        limit: f32,
    },
    /// `1 / (1 + e^-x)`, for plain gates.
    Sigmoid,
    /// The sigmoid approximation of GELU, `x / (1 + e^-1.702x)`.
    QuickGelu,
    /// `max(x, 0)`; ReGLU.
    Relu,
    /// `max(x, 0)²`.
    ReluSquared,
    /// xIELU, arXiv 2411.13010: `alpha_p · x² + beta · x` above zero, else
    /// `alpha_n · (e^min(x, eps) - 1 - x) + beta · x`.
    Xielu {
        /// Factor on the square above zero.
        alpha_p: f32,
        /// Factor on the exponential part below zero.
        alpha_n: f32,
        /// Slope at zero.
        beta: f32,
        /// Upper limit of the exponent, just below zero.
        eps: f32,
    },
}

impl Activation {
    /// Applies the activation to one value of the gate projection and multiplies by the up projection.
    #[inline(always)]
    pub(super) fn gate(self, gate: f32, up: f32) -> f32 {
        match self {
            Activation::Silu => gate / (1.0 + exp(-gate)) * up,
            Activation::QuickGelu => gate / (1.0 + exp(-1.702 * gate)) * up,
            Activation::Gelu => gate * normal_distribution(gate) * up,
            Activation::Relu => positive_part(gate) * up,
            Activation::ReluSquared => positive_part(gate) * positive_part(gate) * up,
            Activation::Sigmoid => up / (1.0 + exp(-gate)),
            Activation::Xielu { alpha_p, alpha_n, beta, eps } => {
                // A comparison, not `min`: NaN must stay NaN.
                let low = if gate < eps { gate } else { eps };
                let below = alpha_n * (exponential_rest(low) + (low - gate));
                let curved = if gate > 0.0 { alpha_p * gate * gate } else { below };
                beta.mul_add(gate, curved) * up
            }
            // (1 + tanh z) / 2 is 1 / (1 + e^-2z).
            Activation::GeluTanh => {
                const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
                gate / (1.0 + exp(-TWICE_ROOT * (0.044_715 * gate * gate).mul_add(gate, gate))) * up
            }
            Activation::ClampedSwiglu { alpha, limit } => {
                // Comparisons, not `min` and `max`: NaN must stay NaN.
                let gate = if gate > limit { limit } else { gate };
                let up = if up > limit {
                    limit
                } else if up < -limit {
                    -limit
                } else {
                    up
                };
                gate / (1.0 + exp(-alpha * gate)) * (up + 1.0)
            }
        }
    }

    /// [`Activation::gate`] of 16 lanes.
    #[inline(always)]
    pub(super) fn gate_lanes(self, gate: &[f32; LANES], up: &[f32; LANES]) -> [f32; LANES] {
        match self {
            Activation::Silu => gate_by(Activation::Silu, gate, up),
            Activation::GeluTanh => gate_by(Activation::GeluTanh, gate, up),
            Activation::ClampedSwiglu { alpha, limit } => {
                gate_by(Activation::ClampedSwiglu { alpha, limit }, gate, up)
            }
            Activation::Sigmoid => gate_by(Activation::Sigmoid, gate, up),
            Activation::QuickGelu => gate_by(Activation::QuickGelu, gate, up),
            Activation::Gelu => gate_by(Activation::Gelu, gate, up),
            Activation::Relu => gate_by(Activation::Relu, gate, up),
            Activation::ReluSquared => gate_by(Activation::ReluSquared, gate, up),
            Activation::Xielu { alpha_p, alpha_n, beta, eps } => {
                gate_by(Activation::Xielu { alpha_p, alpha_n, beta, eps }, gate, up)
            }
        }
    }
}

/// The larger of `x` and 0; NaN stays NaN.
#[inline(always)]
fn positive_part(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// `e^x - 1 - x` for `x` below zero: near zero by its series, where the difference would cancel.
#[inline(always)]
fn exponential_rest(x: f32) -> f32 {
    const SERIES: [f32; 6] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];
    let mut sum = SERIES[0];
    for index in 1..SERIES.len() {
        sum = sum.mul_add(x, SERIES[index]);
    }
    if x > -0.4 { sum * x * x } else { exp(x) - 1.0 - x }
}

/// The cumulative distribution function of the standard normal distribution, `(1 + erf(x / √2)) / 2`.
///
/// Below zero it is `t · Q(t) · e^(-x²/2)` with `t = 1 / (1 + 0.35 |x|)`. `Q` interpolates at the Chebyshev
/// nodes of `|x| ≤ 13.3`, the range in which the exponential is not zero: a relative error of 4e-8 before
/// rounding.
#[inline(always)]
fn normal_distribution(x: f32) -> f32 {
    const Q: [f32; 9] = [
        -0.029_576_544,
        0.146_069_03,
        -0.260_032_9,
        0.164_063_5,
        -0.026_422_694,
        0.106_876_46,
        0.119_498_14,
        0.139_905_97,
        0.139_619_02,
    ];
    let t = 1.0 / 0.35_f32.mul_add(x.abs(), 1.0);
    let mut sum = Q[0];
    for index in 1..Q.len() {
        sum = sum.mul_add(t, Q[index]);
    }
    let tail = t * sum * exp(-0.5 * x * x);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// [`Activation::gate`] of each lane. The caller has matched `activation`, so that the loop has no branch on
/// it and is vectorised.
#[inline(always)]
fn gate_by(activation: Activation, gate: &[f32; LANES], up: &[f32; LANES]) -> [f32; LANES] {
    let mut y = [0.0; LANES];
    for lane in 0..LANES {
        y[lane] = activation.gate(gate[lane], up[lane]);
    }
    y
}

/// Multiplies `up` by the activation of `gate`, elementwise.
///
/// # Shapes
/// - `gate`, `up`, `y`: of the same length; `y` is overwritten
///
/// # Panics
/// When the lengths differ.
///
/// # Source
/// GLU Variants Improve Transformer, arXiv 2002.05202 (SwiGLU, GeGLU).
///
/// # Examples
/// ```
/// use lm_kernels::{Activation, Pool, host};
///
/// let mut y = [0.0; 2];
/// host::glu(Pool::global(), &[0.0, 100.0], &[5.0, 2.0], Activation::Silu, &mut y);
/// assert_eq!(y, [0.0, 200.0]);
/// ```
pub fn glu(pool: &Pool, gate: &[f32], up: &[f32], activation: Activation, y: &mut [f32]) {
    let _span = profile::span(Work::Rows);
    glu_on(Isa::current(), pool, gate, up, activation, y);
}

/// [`glu`] on one instruction set.
fn glu_on(isa: Isa, pool: &Pool, gate: &[f32], up: &[f32], activation: Activation, y: &mut [f32]) {
    assert_eq!(gate.len(), up.len(), "as many gates as inputs");
    assert_eq!(gate.len(), y.len(), "as many results as inputs");
    for_each_chunk(pool, y, ELEMENTS, |index, y| {
        let range = index * ELEMENTS..index * ELEMENTS + y.len();
        isa.run(Glu { gate: &gate[range.clone()], up: &up[range], activation, y });
    });
}

struct Glu<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    activation: Activation,
    y: &'a mut [f32],
}

impl Kernel for Glu<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { gate, up, activation, y } = self;
        let ((gates, last_gates), (ups, last_ups)) = (gate.as_chunks::<LANES>(), up.as_chunks::<LANES>());
        let (ys, last_ys) = y.as_chunks_mut::<LANES>();
        for ((gate, up), y) in gates.iter().zip(ups).zip(ys) {
            *y = activation.gate_lanes(gate, up);
        }
        for ((gate, up), y) in last_gates.iter().zip(last_ups).zip(last_ys) {
            *y = activation.gate(*gate, *up);
        }
    }
}
