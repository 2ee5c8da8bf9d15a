//! Random weights of any format.

use lm_kernels::{Arena, PackedMatrix, Packing, Source, WeightFormat};

/// Creates a random matrix in the arena of its model, in huge pages if there are any. For block types the
/// bytes are random.
///
/// # Errors
/// As [`Packing::new`].
pub fn random_weight(
    arena: &Arena,
    format: WeightFormat,
    rows: usize,
    cols: usize,
) -> Result<PackedMatrix, lm_kernels::Error> {
    let mut packing = Packing::new(arena, format, rows, cols)?;
    match format {
        WeightFormat::Ggml(ggml) => {
            let bytes = rows * ggml.row_bytes(cols).unwrap_or(0);
            // Without this bit, any f16 is below 2.
            let blocks: Vec<u8> = random_bits().map(|bits| bits as u8 & 0xbf).take(bytes).collect();
            packing.push_blocks(rows, &blocks)?;
        }
        _ => packing.push(rows, Source::F32(&noise(rows * cols)))?,
    }
    Ok(packing.finish())
}

/// Pseudo-random numbers between -0.5 and 0.5.
pub fn noise(len: usize) -> Vec<f32> {
    random_bits().map(|bits| bits as f32 / (1 << 24) as f32 - 0.5).take(len).collect()
}

/// 24 random bits at a time (a xorshift generator).
fn random_bits() -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9_u32;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state >> 8
    })
}

/// Checks products `y` of the rows of `x` against sums in double precision.
///
/// # Panics
/// When one is off by more than the format's rounding of activations allows.
pub fn check_product(w: &PackedMatrix, x: &[f32], y: &[f32]) {
    let mut row = vec![0.0; w.cols()];
    for r in (0..w.rows()).step_by(97) {
        w.dequantize_row(r, &mut row);
        for (i, x) in x.chunks_exact(w.cols()).enumerate().step_by(61) {
            let products = x.iter().zip(&row).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let exact: f64 = products.clone().sum();
            let magnitude: f64 = products.map(f64::abs).sum();
            let error = (f64::from(y[i * w.rows() + r]) - exact).abs();
            assert!(error < 1e-2 * magnitude, "{}: row {r} is off by {error}", w.format());
        }
    }
}
