//! Scale search for groups of 4-bit integers: tries several scales and keeps the one with the least weighted
//! error.
//!
//! The error of each value is weighted by its magnitude plus the group's root mean square: large values
//! mostly matter more (docs/decisions/0010-accuracy.md). Where the importance of the columns is known, it is
//! the weight.

use super::super::lanes::{F32x16, LANES, Lanes};
use super::integer::GROUP;
use super::q4::MAX_SCALE;
use super::quantize::{inverse, round};

/// Groups whose largest magnitude is below this are zero: its inverse would be infinite.
const TINY: f32 = 1e-35;

/// Initial candidates of the scale, given as the quant of the largest magnitude.
const TARGETS: [f32; 5] = [8.0, 7.5, 7.0, 6.5, 8.5];

/// A group of 16 rows, prepared for the scale search.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The value of largest magnitude of each row, with its sign.
    largest: F32x16,
    /// The values divided by the largest: from -1 to 1, whatever the magnitude of the weights.
    values: [F32x16; GROUP],
    /// Weights of their squared errors.
    weights: [F32x16; GROUP],
}

/// Weighted sums over the group, for the quants of a candidate scale.
struct Sums {
    /// Sum of values times quants.
    xq: F32x16,
    /// Sum of squared quants.
    qq: F32x16,
}

impl Group {
    /// An empty group, as padding of short blocks.
    pub const EMPTY: Self =
        Self { largest: F32x16::ZERO, values: [F32x16::ZERO; GROUP], weights: [F32x16::ZERO; GROUP] };

    /// Prepares the columns `x`, which must be finite.
    #[inline(always)]
    pub fn new<V: Lanes>(x: &[F32x16; GROUP]) -> Self {
        let (mut high, mut low) = (V::splat(0.0), V::splat(0.0));
        for x in x {
            let x = V::load(&x.0);
            (high, low) = (high.max(x), low.min(x));
        }
        let largest = stored(high).zip(stored(low), |high, low| if -low > high { low } else { high });
        let per_largest = largest.map(|x| if x.abs() > TINY { 1.0 / x } else { 0.0 });
        let factor = V::load(&per_largest.0);
        let mut group = Self { largest, ..Self::EMPTY };
        let mut squares = V::splat(0.0);
        for (value, x) in group.values.iter_mut().zip(x) {
            let x = V::load(&x.0).mul(factor);
            x.store(&mut value.0);
            squares = x.mul_add(x, squares);
        }
        let root = stored(squares).map(|squares| (squares / GROUP as f32).sqrt());
        let (root, minus) = (V::load(&root.0), V::splat(-1.0));
        for (weight, x) in group.weights.iter_mut().zip(&group.values) {
            let x = V::load(&x.0);
            x.max(x.mul(minus)).mul_add(V::splat(1.0), root).store(&mut weight.0);
        }
        group
    }

    /// The group with its columns' importances as weights.
    pub fn weighted(&self, importances: &[F32x16; GROUP]) -> Self {
        Self { weights: *importances, ..*self }
    }

    /// Finds the scale with the least error among the candidates that map the largest magnitude to about -8;
    /// 0 for a group of zeros.
    ///
    /// For given quants the best scale is Σxq / Σq², and it lowers the error by (Σxq)² / Σq².
    #[inline(always)]
    pub fn best_scale<V: Lanes>(&self) -> F32x16 {
        let mut best = Sums { xq: F32x16::ZERO, qq: F32x16([1.0; LANES]) };
        for target in TARGETS {
            let tried = self.sums::<V>(V::splat(-target));
            for lane in 0..LANES {
                let (xq, qq) = (tried.xq.0[lane], tried.qq.0[lane]);
                if xq * xq * best.qq.0[lane] > best.xq.0[lane] * best.xq.0[lane] * qq {
                    (best.xq.0[lane], best.qq.0[lane]) = (xq, qq);
                }
            }
        }
        best.xq.zip(best.qq, |xq, qq| xq / qq).zip(self.largest, |scale, largest| scale * largest)
    }

    /// Finds the integer scale: the multiple of `step` around `best` with the least error, or 0 if no scale
    /// lowers it.
    #[inline(always)]
    pub fn best_factor<V: Lanes>(&self, best: &F32x16, step: &F32x16) -> F32x16 {
        let nearest = best.zip(*step, |best, step| round(best * inverse(step)));
        let mut factor = F32x16::ZERO;
        let mut best_gain = F32x16::ZERO;
        for offset in [0.0, 1.0, -1.0] {
            let limit = f32::from(MAX_SCALE);
            let tried = nearest.map(|nearest| (nearest + offset).clamp(-limit, limit));
            let gain = self.gain::<V>(&tried.zip(*step, |factor, step| factor * step));
            for lane in 0..LANES {
                if gain.0[lane] > best_gain.0[lane] {
                    (best_gain.0[lane], factor.0[lane]) = (gain.0[lane], tried.0[lane]);
                }
            }
        }
        factor
    }

    /// Weighted sum of squares that a scale explains, relative to the square of the largest value: the more,
    /// the less the error.
    #[inline(always)]
    pub fn gain<V: Lanes>(&self, scale: &F32x16) -> F32x16 {
        let scale = self.relative(scale);
        let sums = self.sums::<V>(V::load(&scale.map(inverse).0));
        let mut gain = scale;
        for lane in 0..LANES {
            let scale = scale.0[lane];
            gain.0[lane] = scale * (2.0 * sums.xq.0[lane] - scale * sums.qq.0[lane]);
        }
        gain
    }

    /// The value of largest magnitude of each row, with its sign.
    pub fn largest(&self) -> &F32x16 {
        &self.largest
    }

    /// Computes the quants of each column for a scale.
    #[inline(always)]
    pub fn quants<V: Lanes>(&self, scale: &F32x16, mut write: impl FnMut(usize, F32x16)) {
        let inverse = V::load(&self.relative(scale).map(inverse).0);
        for (column, x) in self.values.iter().enumerate() {
            write(column, stored(quants(V::load(&x.0), inverse)));
        }
    }

    #[inline(always)]
    fn sums<V: Lanes>(&self, inverse: V) -> Sums {
        let (mut xq, mut qq) = ([V::splat(0.0); 2], [V::splat(0.0); 2]);
        let (values, weights) = (self.values.as_chunks::<2>().0, self.weights.as_chunks::<2>().0);
        for (values, weights) in values.iter().zip(weights) {
            // Two accumulators each, to hide the latency of the additions.
            for half in 0..2 {
                let x = V::load(&values[half].0);
                let q = quants(x, inverse);
                let weighed = q.mul(V::load(&weights[half].0));
                xq[half] = x.mul_add(weighed, xq[half]);
                qq[half] = q.mul_add(weighed, qq[half]);
            }
        }
        let sum = |[even, odd]: [V; 2]| stored(even.mul_add(V::splat(1.0), odd));
        Sums { xq: sum(xq), qq: sum(qq) }
    }

    /// Converts a scale to one of [`Group::values`].
    #[inline(always)]
    fn relative(&self, scale: &F32x16) -> F32x16 {
        scale.zip(self.largest, |scale, largest| if largest.abs() > TINY { scale / largest } else { 0.0 })
    }
}

/// Rounds `x * inverse` to the nearest integers, ties to even, clamped to -8 to 7.
#[inline(always)]
fn quants<V: Lanes>(x: V, inverse: V) -> V {
    let shift = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    let rounded = x.mul_add(inverse, V::splat(shift)).mul_add(V::splat(1.0), V::splat(-shift));
    rounded.max(V::splat(-8.0)).min(V::splat(7.0))
}

#[inline(always)]
fn stored<V: Lanes>(x: V) -> F32x16 {
    let mut out = F32x16::ZERO;
    x.store(&mut out.0);
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Random;
    use super::*;

    fn group(random: &mut Random) -> Group {
        let x: [F32x16; GROUP] =
            std::array::from_fn(|_| F32x16(random.normal(LANES).try_into().expect("as many as lanes")));
        Group::new::<F32x16>(&x)
    }

    #[test]
    fn factor_beats_its_neighbours() {
        let mut random = Random(26);
        for _ in 0..50 {
            let group = group(&mut random);
            let best = group.best_scale::<F32x16>();
            let step = best.map(|best| best.abs() / 9.4);
            let factor = group.best_factor::<F32x16>(&best, &step);
            let gain = group.gain::<F32x16>(&factor.zip(step, |factor, step| factor * step));
            let nearest = best.zip(step, |best, step| round(best / step));
            for offset in [-1.0, 0.0, 1.0] {
                let other =
                    group.gain::<F32x16>(&nearest.zip(step, |nearest, step| (nearest + offset) * step));
                assert!((0..LANES).all(|lane| other.0[lane] <= gain.0[lane]), "{offset}");
            }
        }
    }

    #[test]
    fn weights_are_magnitude_plus_root_mean_square() {
        let group = group(&mut Random(27));
        for lane in 0..LANES {
            let squares: f32 = group.values.iter().map(|x| x.0[lane] * x.0[lane]).sum();
            let root = (squares / GROUP as f32).sqrt();
            for (x, weight) in group.values.iter().zip(&group.weights) {
                assert!((weight.0[lane] - x.0[lane].abs() - root).abs() < 1e-5);
            }
        }
    }
}
