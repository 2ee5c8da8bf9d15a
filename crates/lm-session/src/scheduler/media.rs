//! Media of active requests: their encodings, and the rows of a step.

use std::collections::HashMap;
use std::sync::Arc;

use lm_model::{AttentionKind, AttentionSpan, EncodedMedia, MediaSlice, SequenceInput};

use super::{Active, Scheduler};
use crate::media::{Encoded, MediaKey, MediaSpan, positions};

/// Encodings that an active request needs for its next rows.
#[derive(Debug, Default)]
pub(super) struct ActiveMedia {
    encoded: HashMap<MediaKey, Arc<EncodedMedia>>,
    /// The media item that the request needs to continue.
    pub(super) awaited: Option<MediaKey>,
}

impl ActiveMedia {
    /// Drops the encodings of media whose rows are all among the first `cached_len` tokens.
    pub(super) fn release(&mut self, spans: &[MediaSpan], cached_len: usize) {
        let needed =
            |key: &MediaKey| spans.iter().any(|span| span.end() > cached_len && span.media.key() == *key);
        self.encoded.retain(|key, _| needed(key));
    }
}

impl Active {
    /// Adds the rows of media, their attention and the positions to the input of a step.
    pub(super) fn add_media(&self, input: &mut SequenceInput) {
        let spans = &self.request.media;
        if spans.is_empty() {
            return;
        }
        let places = input.cached_len..input.cached_len + input.rows();
        input.positions = positions(spans, places.clone());
        for span in spans {
            let (start, end) = (span.start.max(places.start), span.end().min(places.end));
            if start >= end {
                continue;
            }
            let (row, len) = (start - places.start, end - start);
            let first = span.rows.start + start - span.start;
            let media = self.media.encoded.get(&span.media.key()).expect("`fit_media` has it").clone();
            input.media.push(MediaSlice { row, media, range: first..first + len });
            if span.attention != AttentionKind::Causal {
                input.spans.push(AttentionSpan { rows: row..row + len, kind: span.attention });
            }
        }
    }
}

impl Scheduler {
    /// Number of rows, of `rows` planned ones, that a request can run: up to a media item that is not encoded
    /// yet, and never a part of rows that attend to each other, unless the rest of them is cached. A media
    /// item larger than a chunk runs in one step.
    pub(super) fn fit_media(&mut self, index: usize, rows: usize) -> usize {
        let Active { request, media, alive, .. } = &mut self.active[index];
        let cached_len = self.caches.len(request.session);
        let mut end = cached_len + rows;
        for span in &request.media {
            if span.end() <= cached_len {
                continue;
            }
            if span.start >= end {
                break;
            }
            let key = span.media.key();
            if !media.encoded.contains_key(&key) {
                let Some(encoded) = self.encodings.get(&span.media, alive) else {
                    media.awaited = Some(key).filter(|_| span.start <= cached_len);
                    return span.start.saturating_sub(cached_len);
                };
                media.encoded.insert(key, encoded);
            }
            if span.attention != AttentionKind::Causal && span.end() > end {
                if span.start > cached_len {
                    return span.start - cached_len;
                }
                end = span.end();
            }
        }
        end - cached_len
    }

    /// Hands an encoding to the requests that need it, or fails the request of a failed encoding: others try
    /// again.
    pub(super) fn handle_encoded(&mut self, encoded: Encoded) {
        let key = encoded.key;
        let outcome = self.encodings.finish(encoded);
        let awaiting = |active: &Active| active.media.awaited == Some(key);
        let first = self.active.iter().position(awaiting);
        for active in &mut self.active {
            active.media.awaited.take_if(|awaited| *awaited == key);
            let needs = active.request.media.iter().any(|span| span.media.key() == key);
            if let (true, Some(Ok(encoded))) = (needs, &outcome) {
                active.media.encoded.insert(key, encoded.clone());
            }
        }
        if let (Some(index), Some(Err(error))) = (first, outcome) {
            self.fail(index, error);
        }
    }
}
