use std::ops::Range;
use std::sync::Arc;

use super::Embeddings;

/// Rows of one image or audio from encoder and projector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodedMedia {
    /// `[rows, hidden_size]`, in place of rows of the embedding table.
    pub rows: Embeddings,
    /// DeepStack: the `i`-th, of the shape of `rows`, is added to the hidden states of these rows after
    /// decoder layer `i`. Empty for other families.
    pub deep: Vec<Embeddings>,
}

impl EncodedMedia {
    /// Bytes of the numbers.
    pub fn bytes(&self) -> usize {
        let values = self.deep.iter().fold(self.rows.values.len(), |sum, rows| sum + rows.values.len());
        values * size_of::<f32>()
    }
}

/// Rows of an image or an audio clip in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaSlice {
    /// First row of the call that is replaced.
    pub row: usize,
    /// The encoded media item.
    pub media: Arc<EncodedMedia>,
    /// Rows of the media item.
    pub range: Range<usize>,
}

impl MediaSlice {
    /// Returns the rows of the call that are replaced.
    pub fn rows(&self) -> Range<usize> {
        self.row..self.row.saturating_add(self.range.len())
    }
}
