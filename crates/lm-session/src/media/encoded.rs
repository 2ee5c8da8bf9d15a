//! Answer of the encoding thread.

use std::fmt;
use std::sync::Arc;

use lm_model::EncodedMedia;

use crate::error::Result;
use crate::media::MediaKey;

/// A media item with its encoding.
pub(crate) struct Encoded {
    pub key: MediaKey,
    /// `None` if its request had ended before.
    pub outcome: Option<Result<Arc<EncodedMedia>>>,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome.as_ref().map(|outcome| outcome.as_ref().map(|_| ()));
        f.debug_struct("Encoded").field("key", &self.key).field("outcome", &outcome).finish()
    }
}
