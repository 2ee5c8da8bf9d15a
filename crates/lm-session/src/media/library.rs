//! Media of an engine that are in use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Media, MediaKey};

static DECODING: Mutex<()> = Mutex::new(());

/// Waits until no other thread of the process decodes a file: a large image takes up to 770 MB
/// ([`lm_media::DecodeLimits::max_pixels`]).
pub(crate) fn decoding() -> MutexGuard<'static, ()> {
    DECODING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Media held by a caller or a session, by key: a repeated item is not decoded again.
#[derive(Debug, Default)]
pub(crate) struct MediaLibrary {
    known: Mutex<HashMap<MediaKey, Weak<Media>>>,
}

impl MediaLibrary {
    pub fn get(&self, key: MediaKey) -> Option<Arc<Media>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key)?.upgrade()
    }

    /// Adds a media item, and removes unused ones. Returns the existing item if another thread was faster.
    pub fn add(&self, media: Media) -> Arc<Media> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&media.key).and_then(Weak::upgrade) {
            return known;
        }
        known.retain(|_, media| media.strong_count() > 0);
        let media = Arc::new(media);
        known.insert(media.key, Arc::downgrade(&media));
        media
    }
}
