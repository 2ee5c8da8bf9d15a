//! Images as rows of numbers, one per patch: the input of vision towers.

use crate::image::Image;
use crate::size::ImageSize;

/// Values of a channel: `(byte / 255 - mean) / std`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalization {
    /// Subtracted, by channel.
    pub mean: [f32; 3],
    /// Divisor, by channel.
    pub std: [f32; 3],
}

impl Normalization {
    /// Values from 0 to 1.
    pub const NONE: Self = Self { mean: [0.0; 3], std: [1.0; 3] };
    /// Values from -1 to 1.
    pub const HALF: Self = Self { mean: [0.5; 3], std: [0.5; 3] };
    /// The statistics of CLIP's images.
    pub const CLIP: Self = Self {
        mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
        std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
    };

    /// Value of each byte in a channel.
    fn table(&self, channel: usize) -> [f32; 256] {
        let (mean, std) = (self.mean[channel], self.std[channel]);
        // 1/255 is a double in the configurations, and the product is rounded once.
        std::array::from_fn(|byte| ((byte as f64 * (1.0 / 255.0)) as f32 - mean) / std)
    }
}

/// Order of patches and of the numbers in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOrder {
    /// Patches row by row; in a patch, channels of rows: `[channel, row, column]`.
    ChannelsFirst,
    /// Patches row by row; in a patch, pixels: `[row, column, channel]`.
    ChannelsLast,
    /// Blocks of `merge` × `merge` patches row by row, and the patches of a block row by row. In a patch,
    /// each channel `frames` times: `[channel, frame, row, column]`.
    Blocks {
        /// Patches of a block's side.
        merge: usize,
        /// Number of frames of a still image.
        frames: usize,
    },
}

/// The patches of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Rows of patches.
    pub rows: usize,
    /// Patches of a row.
    pub columns: usize,
    /// Numbers, `[rows * columns, numbers of a patch]`.
    pub values: Vec<f32>,
}

impl Patches {
    /// Cuts an image whose sides are multiples of `patch`.
    ///
    /// # Panics
    /// When a side is not a multiple, or blocks do not fit.
    pub fn of(image: &Image, patch: usize, order: PatchOrder, normalization: &Normalization) -> Self {
        let ImageSize { width, height } = image.size();
        assert!(
            width.is_multiple_of(patch) && height.is_multiple_of(patch),
            "expected multiples of {patch}, got {}",
            image.size()
        );
        let (rows, columns) = (height / patch, width / patch);
        let tables = [0, 1, 2].map(|channel| normalization.table(channel));
        let value = |y: usize, x: usize, channel: usize| {
            tables[channel][usize::from(image.rgb()[(y * width + x) * 3 + channel])]
        };
        let mut values = Vec::with_capacity(width * height * 3);
        for (row, column) in positions(rows, columns, order) {
            let at =
                |(y, x, channel): (usize, usize, usize)| value(row * patch + y, column * patch + x, channel);
            values.extend(pixels(patch, order).map(at));
        }
        Self { rows, columns, values }
    }
}

/// The patches as row and column.
fn positions(rows: usize, columns: usize, order: PatchOrder) -> impl Iterator<Item = (usize, usize)> {
    let side = match order {
        PatchOrder::Blocks { merge, .. } => merge,
        _ => 1,
    };
    assert!(
        rows.is_multiple_of(side) && columns.is_multiple_of(side),
        "expected multiples of {side} patches, got {columns} × {rows}"
    );
    let block = move |(row, column): (usize, usize)| {
        grid(side, side).map(move |(y, x)| (row * side + y, column * side + x))
    };
    grid(rows / side, columns / side).flat_map(block)
}

/// The numbers of a patch as row, column and channel.
fn pixels(patch: usize, order: PatchOrder) -> Box<dyn Iterator<Item = (usize, usize, usize)>> {
    let frames = match order {
        PatchOrder::ChannelsLast => {
            return Box::new(grid(patch, patch).flat_map(|(y, x)| [0, 1, 2].map(|channel| (y, x, channel))));
        }
        PatchOrder::ChannelsFirst => 1,
        PatchOrder::Blocks { frames, .. } => frames,
    };
    Box::new(
        (0..3 * frames).flat_map(move |plane| grid(patch, patch).map(move |(y, x)| (y, x, plane / frames))),
    )
}

fn grid(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}
