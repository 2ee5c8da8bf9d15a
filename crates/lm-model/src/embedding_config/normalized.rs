//! Normalisation of embeddings.

/// Scales `values` to length 1; zeros stay zeros.
///
/// ```
/// // The first elements of an embedding, as the embedding of a model that supports it.
/// let shortened = lm_model::normalized(vec![0.36, 0.48, 0.8].into_iter().take(2).collect());
/// assert!((shortened[0] - 0.6).abs() < 1e-6 && (shortened[1] - 0.8).abs() < 1e-6);
/// ```
pub fn normalized(mut values: Vec<f32>) -> Vec<f32> {
    let squares: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
    if squares > 0.0 {
        let factor = squares.sqrt().recip();
        values.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
    }
    values
}
