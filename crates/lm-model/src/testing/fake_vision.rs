use std::sync::atomic::{AtomicUsize, Ordering};

use lm_media::{Image, ImageSize};

use super::random::{encoded, mix};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::error::Result;
use crate::media::{ImageOptions, MediaLayout, MediaPiece, MediaPositions, MediaRows, VisionEncoder};

/// Maximum number of rows or columns of the grid.
const MAX_SIDE: usize = 4;
/// Rows before the grid.
const FIRST_ROWS: usize = 2;

/// [`VisionEncoder`] without weights for [`FakeLm`](super::FakeLm): each row depends on all pixels.
///
/// An image is `[`, two rows with bidirectional attention, a line break, a grid of causal rows with M-RoPE
/// positions and `]`. The grid has a row and a column for each pixel, at most 4 × 4, or
/// [`ImageOptions::token_budget`] columns in one row. Placeholder and token are `<tool_response>`, which the
/// test tokenizer has.
///
/// ```
/// use lm_media::{Image, ImageSize};
/// use lm_model::testing::FakeVision;
/// use lm_model::{ImageOptions, VisionEncoder};
///
/// let vision = FakeVision::default();
/// let image = Image::from_rgb(ImageSize::new(3, 1), vec![7; 9])?;
/// let encoded = vision.encode(&image, &ImageOptions::default())?;
/// assert_eq!(encoded.rows.rows(), 2 + 3);
/// assert_eq!(vision.encodings(), 1);
/// # Ok::<(), lm_model::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct FakeVision {
    encodings: AtomicUsize,
}

impl FakeVision {
    /// Number of calls of [`VisionEncoder::encode`].
    pub fn encodings(&self) -> usize {
        self.encodings.load(Ordering::Relaxed)
    }
}

impl VisionEncoder for FakeVision {
    fn placeholder(&self) -> &str {
        "<tool_response>"
    }

    fn token(&self) -> &str {
        "<tool_response>"
    }

    fn layout(&self, size: ImageSize, options: &ImageOptions) -> Result<MediaLayout> {
        let (rows, columns) = match options.token_budget {
            Some(budget) => (1, budget),
            None => (size.height.min(MAX_SIDE), size.width.min(MAX_SIDE)),
        };
        let first = MediaRows::sequential(FIRST_ROWS, AttentionKind::Bidirectional);
        let grid = MediaRows {
            count: rows * columns,
            attention: AttentionKind::Causal,
            positions: MediaPositions::Grid { rows, columns },
        };
        let text = |text: &str| MediaPiece::Text(text.to_owned());
        let pieces = vec![text("["), MediaPiece::Rows(first), text("\n"), MediaPiece::Rows(grid), text("]")];
        Ok(MediaLayout { pieces })
    }

    fn encode(&self, image: &Image, options: &ImageOptions) -> Result<EncodedMedia> {
        self.encodings.fetch_add(1, Ordering::Relaxed);
        let rows = self.layout(image.size(), options)?.rows();
        let ImageSize { width, height } = image.size();
        let start = mix((width as u64) << 32 | height as u64);
        let seed = image.rgb().iter().fold(start, |state, &byte| mix(state ^ u64::from(byte)));
        Ok(encoded(seed, rows))
    }
}
