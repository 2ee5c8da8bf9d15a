//! Order and places of an image's patches.

/// Patches of an image in the tower's order: the `merge`² patches of a token stay together, as do those of a
/// window.
pub(super) struct PatchPlaces {
    /// Index of each token in the row-by-row order of the image.
    pub(super) tokens: Vec<usize>,
    /// Row and column of each patch.
    pub(super) patches: Vec<[u32; 2]>,
    /// Patches of each window.
    pub(super) windows: Vec<usize>,
}

impl PatchPlaces {
    /// Places of `rows` × `columns` patches; windows have `window` tokens a side, and there is one of all
    /// tokens without it.
    pub(super) fn new([rows, columns]: [usize; 2], merge: usize, window: Option<usize>) -> Self {
        let [height, width] = [rows / merge, columns / merge];
        let window = window.unwrap_or(height.max(width));
        let mut places = Self { tokens: Vec::new(), patches: Vec::new(), windows: Vec::new() };
        for (top, left) in grid((0..height).step_by(window), (0..width).step_by(window)) {
            let (bottom, right) = (height.min(top + window), width.min(left + window));
            for (row, column) in grid(top..bottom, left..right) {
                places.tokens.push(row * width + column);
                let patches = grid(0..merge, 0..merge);
                places
                    .patches
                    .extend(patches.map(|(y, x)| [row * merge + y, column * merge + x].map(|n| n as u32)));
            }
            places.windows.push((bottom - top) * (right - left) * merge * merge);
        }
        places
    }

    /// Reorders the rows of an image's tokens, or the `merge`² rows of each, for the tower.
    pub(super) fn in_tower_order(&self, values: Vec<f32>) -> Vec<f32> {
        if self.tokens.is_sorted() {
            return values;
        }
        let width = values.len() / self.tokens.len();
        self.tokens.iter().flat_map(|token| &values[token * width..(token + 1) * width]).copied().collect()
    }

    /// Reorders the tower's rows of tokens to their order in the image.
    pub(super) fn in_image_order(&self, values: Vec<f32>) -> Vec<f32> {
        if self.tokens.is_sorted() {
            return values;
        }
        let (width, mut out) = (values.len() / self.tokens.len(), vec![0.0; values.len()]);
        for (&token, row) in self.tokens.iter().zip(values.chunks_exact(width)) {
            out[token * width..(token + 1) * width].copy_from_slice(row);
        }
        out
    }
}

fn grid(
    rows: impl Iterator<Item = usize>,
    columns: impl Iterator<Item = usize> + Clone,
) -> impl Iterator<Item = (usize, usize)> {
    rows.flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// Values of a square table of positions, `[side, side, width]`, at each place of an image of `rows` ×
/// `columns` patches, whose corners are those of the table: `[places, width]`, bilinear.
pub(super) fn interpolated(
    table: &[f32],
    side: usize,
    [rows, columns]: [usize; 2],
    places: &[[u32; 2]],
) -> Vec<f32> {
    let width = table.len() / (side * side);
    let mut out = vec![0.0; places.len() * width];
    for (out, &[row, column]) in out.chunks_exact_mut(width).zip(places) {
        let across = taps(column, columns, side);
        for (y, down) in taps(row, rows, side) {
            for (x, weight) in across {
                let from = &table[(y * side + x) * width..][..width];
                out.iter_mut().zip(from).for_each(|(sum, value)| *sum += down * weight * value);
            }
        }
    }
    out
}

/// The two entries of an axis of `side` next to place `index` of `size`, with their weights.
fn taps(index: u32, size: usize, side: usize) -> [(usize, f32); 2] {
    let place = index as f32 * (side - 1) as f32 / (size.max(2) - 1) as f32;
    let (first, part) = (place.floor() as usize, place - place.floor());
    [(first.min(side - 1), 1.0 - part), ((first + 1).min(side - 1), part)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_clipped_at_right_and_bottom() {
        let places = PatchPlaces::new([4, 6], 2, Some(2));
        assert_eq!(places.tokens, [0, 1, 3, 4, 2, 5]);
        assert_eq!(places.windows, [16, 8]);
        assert_eq!(places.patches[4..8], [[0, 2], [0, 3], [1, 2], [1, 3]]);
        assert_eq!(places.in_tower_order(vec![0., 1., 2., 3., 4., 5.]), [0., 1., 3., 4., 2., 5.]);
        assert_eq!(places.in_image_order(vec![0., 1., 3., 4., 2., 5.]), [0., 1., 2., 3., 4., 5.]);
        assert_eq!(PatchPlaces::new([4, 6], 2, None).windows, [24]);
    }

    #[test]
    fn table_corners_match_image_corners() {
        let table = [0., 10., 20., 30., 40., 50., 60., 70., 80.];
        let at = |places: &[[u32; 2]]| interpolated(&table, 3, [2, 5], places);
        assert_eq!(at(&[[0, 0], [0, 4], [1, 0], [1, 4], [0, 1], [1, 3]]), [0., 20., 60., 80., 5., 75.]);
        assert_eq!(interpolated(&table, 3, [1, 1], &[[0, 0]]), [0.]);
    }
}
