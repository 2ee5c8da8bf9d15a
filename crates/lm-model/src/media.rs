//! Pictures in prompts: the rows and texts of a picture, and the interface of vision towers.

use lm_media::{Picture, PictureSize};

use crate::batch::{AttentionKind, EncodedMedia};
use crate::error::Result;

/// Preprocessing, tower and projector of a model's pictures.
pub trait VisionEncoder: Send + Sync {
    /// The text that a chat template writes for a picture: `<|image_pad|>`, `<start_of_image>`, `<image>`. The texts and rows of
    /// [`VisionEncoder::layout`] replace it.
    fn placeholder(&self) -> &str;

    /// The added token whose id stands for each row of a picture: `<|image_pad|>`, `<image_soft_token>`, `<image>`.
    fn token(&self) -> &str;

    /// Texts and rows of a picture of this size in a prompt.
    ///
    /// # Errors
    /// When the model cannot take a picture of this size, or these options.
    fn layout(&self, size: PictureSize, options: &PictureOptions) -> Result<MediaLayout>;

    /// Runs tower and projector. The number of rows is [`MediaLayout::rows`] of the picture's size.
    ///
    /// # Errors
    /// Those of [`VisionEncoder::layout`], and the device's.
    fn encode(&self, picture: &Picture, options: &PictureOptions) -> Result<EncodedMedia>;
}

/// Options of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PictureOptions {
    /// Maximum number of rows, where the model lets the caller choose (`visual_token_budget` of Gemma 4). Default: the model's.
    pub token_budget: Option<usize>,
}

/// Texts and rows of a picture in a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaLayout {
    /// The pieces, in the order of the prompt.
    pub pieces: Vec<MediaPiece>,
}

impl MediaLayout {
    /// Number of rows of all pieces.
    pub fn rows(&self) -> usize {
        let rows = self.pieces.iter().map(|piece| match piece {
            MediaPiece::Text(_) => 0,
            MediaPiece::Rows(rows) => rows.count,
        });
        rows.sum()
    }
}

/// Part of a [`MediaLayout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaPiece {
    /// Template text before, between or after rows; added tokens in it are recognised (`<start_of_image>`, `<row_1_col_1>`).
    Text(String),
    /// The next rows of the encoded picture.
    Rows(MediaRows),
}

/// Adjacent rows of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaRows {
    /// Number of rows.
    pub count: usize,
    /// Attention among them.
    pub attention: AttentionKind,
    /// Their RoPE positions.
    pub positions: MediaPositions,
}

/// RoPE positions of adjacent rows of a picture, which begin at position `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaPositions {
    /// `p`, `p + 1`, ...: as for text.
    Sequential,
    /// Row by row, `(p, p + row, p + column)` (M-RoPE). The position after them is `p + max(rows, columns)`.
    Grid {
        /// Rows of the grid.
        rows: usize,
        /// Columns of the grid.
        columns: usize,
    },
}
