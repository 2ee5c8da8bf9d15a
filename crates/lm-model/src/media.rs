//! Images and audio in prompts: their rows and texts, and the interfaces of vision towers and audio encoders.

use lm_media::{Audio, Image, ImageSize};

use crate::batch::{AttentionKind, EncodedMedia};
use crate::error::Result;

/// Preprocessing, tower and projector of a model's images.
pub trait VisionEncoder: Send + Sync {
    /// The text that a chat template writes for an image: `<|image_pad|>`, `<start_of_image>`, `<image>`. The
    /// texts and rows of [`VisionEncoder::layout`] replace it.
    fn placeholder(&self) -> &str;

    /// The added token whose id marks each row of an image: `<|image_pad|>`, `<image_soft_token>`, `<image>`.
    fn token(&self) -> &str;

    /// Texts and rows of an image of this size in a prompt.
    ///
    /// # Errors
    /// When the model cannot take an image of this size, or these options.
    fn layout(&self, size: ImageSize, options: &ImageOptions) -> Result<MediaLayout>;

    /// Runs tower and projector. The number of rows is [`MediaLayout::rows`] of the image's size.
    ///
    /// # Errors
    /// The errors of [`VisionEncoder::layout`] and of the device.
    fn encode(&self, image: &Image, options: &ImageOptions) -> Result<EncodedMedia>;
}

/// Preprocessing, encoder and projector of a model's audio clips.
pub trait AudioEncoder: Send + Sync {
    /// The text that a chat template writes for an audio clip: `<|audio|>`. The texts and rows of
    /// [`AudioEncoder::layout`] replace it.
    fn placeholder(&self) -> &str;

    /// The added token whose id marks each row of an audio clip: `<|audio|>`.
    fn token(&self) -> &str;

    /// Texts and rows in a prompt of an audio clip of this many samples at [`lm_media::SAMPLE_RATE`].
    ///
    /// # Errors
    /// When the model cannot take an audio clip of this length.
    fn layout(&self, samples: usize) -> Result<MediaLayout>;

    /// Maximum number of samples of an audio clip; preprocessing drops the rest. `None`, the default, is no
    /// limit.
    fn max_samples(&self) -> Option<usize> {
        None
    }

    /// Runs encoder and projector. The number of rows is [`MediaLayout::rows`] of the audio's length.
    ///
    /// # Errors
    /// The errors of [`AudioEncoder::layout`] and of the device.
    fn encode(&self, audio: &Audio) -> Result<EncodedMedia>;
}

/// Options of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ImageOptions {
    /// Maximum number of rows, if the model supports a choice (`visual_token_budget` of Gemma 4). Default:
    /// the model's own.
    pub token_budget: Option<usize>,
}

/// Texts and rows of an image or an audio clip in a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaLayout {
    /// The pieces, in the order of the prompt.
    pub pieces: Vec<MediaPiece>,
}

impl MediaLayout {
    /// Rows between two texts.
    pub(crate) fn enclosed(before: &str, rows: MediaRows, after: &str) -> Self {
        let text = |text: &str| MediaPiece::Text(text.to_owned());
        Self { pieces: vec![text(before), MediaPiece::Rows(rows), text(after)] }
    }

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
    /// Template text before, between or after rows; added tokens in it are recognised (`<start_of_image>`,
    /// `<row_1_col_1>`).
    Text(String),
    /// The next rows of the encoded media item.
    Rows(MediaRows),
}

/// Adjacent rows of an image or an audio clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaRows {
    /// Number of rows.
    pub count: usize,
    /// Attention among them.
    pub attention: AttentionKind,
    /// Their RoPE positions.
    pub positions: MediaPositions,
}

impl MediaRows {
    /// Rows with the positions of text.
    pub(crate) fn sequential(count: usize, attention: AttentionKind) -> Self {
        Self { count, attention, positions: MediaPositions::Sequential }
    }
}

/// RoPE positions of adjacent rows of a media item, starting at position `p`.
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
