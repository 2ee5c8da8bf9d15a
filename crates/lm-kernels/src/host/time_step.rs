//! Time steps of recurrent layers.

/// Above this the logarithm of `1 + e^x` is `x`, as in PyTorch's `softplus`.
const LINEAR: f64 = 20.0;

/// `ln(1 + e^x)`.
pub(super) fn softplus(x: f64) -> f64 {
    if x > LINEAR { x } else { x.exp().ln_1p() }
}
