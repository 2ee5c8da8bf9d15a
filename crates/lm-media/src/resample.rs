//! Resampling with the arithmetic of Pillow's `Image.resize` for 8-bit images (`src/libImaging/Resample.c` of
//! Pillow 12.3): a pass over rows, then one over columns, weights with 22 fractional bits, and bytes between
//! the passes. The columns come first in images more than 100 times as high as wide whose height shrinks
//! (`PIL/Image.py`).
//!
//! The filters of other libraries differ in single bits, which a vision tower amplifies.

use std::borrow::Cow;
use std::f64::consts::PI;

use crate::size::ImageSize;

/// Fractional bits of the weights: of 32 bits, eight hold a byte and two the overflow of sums.
const PRECISION: u32 = 32 - 8 - 2;

/// Resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Linear interpolation; a triangle as wide as two pixels.
    Bilinear,
    /// Cubic convolution with a = -0.5, as wide as four pixels.
    Bicubic,
    /// Truncated sinc, as wide as six pixels.
    Lanczos,
}

impl Filter {
    /// Half the width of the filter in pixels of the coarser image.
    fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// Weight at a distance from the centre.
    fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        match self {
            _ if x >= self.support() => 0.0,
            Self::Bilinear => 1.0 - x,
            Self::Bicubic if x < 1.0 => ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0,
            Self::Bicubic => (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC,
            Self::Lanczos => sinc(x) * sinc(x / 3.0),
        }
    }
}

/// Parameter of cubic convolution.
const CUBIC: f64 = -0.5;

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
}

/// Weights of the source pixels that make one target pixel.
struct Window {
    first: usize,
    weights: Vec<i32>,
}

/// Returns the windows of a row or column of `target` pixels computed from `source` pixels.
fn windows(source: usize, target: usize, filter: Filter) -> Vec<Window> {
    let scale = source as f64 / target as f64;
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    let window = |index: usize| {
        let center = (index as f64 + 0.5) * scale;
        let first = (center - support + 0.5).max(0.0) as usize;
        let end = ((center + support + 0.5) as usize).min(source);
        let inverse = 1.0 / stretch;
        let weight = |pixel: usize| filter.weight((pixel as f64 - center + 0.5) * inverse);
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        Window { first, weights: weights.iter().map(|weight| fixed(weight / sum)).collect() }
    };
    (0..target).map(window).collect()
}

/// A weight as a rounded number of `PRECISION` fractional bits.
fn fixed(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << PRECISION);
    (if scaled < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i32
}

/// A weighted sum as a byte.
fn byte(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Half of a byte's step: sums are rounded.
const HALF: i32 = 1 << (PRECISION - 1);

/// Resamples `[height, width, 3]` bytes.
pub fn resampled(rgb: &[u8], source: ImageSize, target: ImageSize, filter: Filter) -> Vec<u8> {
    let columns_first = source.height > source.width.saturating_mul(100) && target.height < source.height;
    let between = match columns_first {
        true => ImageSize::new(source.width, target.height),
        false => ImageSize::new(target.width, source.height),
    };
    let first = resampled_once(rgb, source, between, filter);
    resampled_once(&first, between, target, filter).into_owned()
}

/// Resamples the rows or the columns: one side of the target is the source's.
fn resampled_once(rgb: &[u8], source: ImageSize, target: ImageSize, filter: Filter) -> Cow<'_, [u8]> {
    if source.width != target.width {
        resampled_rows(rgb, source.width, &windows(source.width, target.width, filter)).into()
    } else if source.height != target.height {
        resampled_columns(rgb, source.width * 3, &windows(source.height, target.height, filter)).into()
    } else {
        rgb.into()
    }
}

fn resampled_rows(rgb: &[u8], width: usize, windows: &[Window]) -> Vec<u8> {
    let pixel = |row: &[u8], window: &Window| {
        let mut sums = [HALF; 3];
        let pixels = row[window.first * 3..].chunks_exact(3);
        for (pixel, weight) in pixels.zip(&window.weights) {
            for (sum, channel) in sums.iter_mut().zip(pixel) {
                *sum += i32::from(*channel) * weight;
            }
        }
        sums.map(byte)
    };
    let row = |row: &'_ [u8]| windows.iter().flat_map(|window| pixel(row, window)).collect::<Vec<u8>>();
    rgb.chunks_exact(width * 3).flat_map(row).collect()
}

fn resampled_columns(rgb: &[u8], stride: usize, windows: &[Window]) -> Vec<u8> {
    let mut out = Vec::with_capacity(windows.len() * stride);
    let mut sums = vec![0; stride];
    for window in windows {
        sums.fill(HALF);
        for (row, weight) in rgb[window.first * stride..].chunks_exact(stride).zip(&window.weights) {
            for (sum, channel) in sums.iter_mut().zip(row) {
                *sum += i32::from(*channel) * weight;
            }
        }
        out.extend(sums.iter().map(|&sum| byte(sum)));
    }
    out
}
