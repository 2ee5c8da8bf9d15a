use std::sync::atomic::{AtomicUsize, Ordering};

use lm_media::Audio;

use super::random::{encoded, mix};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::error::Result;
use crate::media::{AudioEncoder, MediaLayout, MediaRows};

/// Samples of a row.
const SAMPLES: usize = 2000;
/// Maximum number of rows.
const MAX_ROWS: usize = 5;
/// Maximum number of samples, 30 seconds.
const MAX_SAMPLES: usize = 480_000;

/// [`AudioEncoder`] without weights for [`FakeLm`](super::FakeLm): each row depends on all samples.
///
/// An audio clip is `(`, a causal row per started 2000 samples, at most five, and `)`; it has at most 30
/// seconds. Placeholder and token are `</tool_response>`, which the test tokenizer has.
///
/// ```
/// use lm_media::Audio;
/// use lm_model::AudioEncoder;
/// use lm_model::testing::FakeAudio;
///
/// let audio = FakeAudio::default();
/// let encoded = audio.encode(&Audio::from_samples(vec![0.25; 2001])?)?;
/// assert_eq!((encoded.rows.rows(), audio.encodings()), (2, 1));
/// # Ok::<(), lm_model::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct FakeAudio {
    encodings: AtomicUsize,
}

impl FakeAudio {
    /// Number of calls of [`AudioEncoder::encode`].
    pub fn encodings(&self) -> usize {
        self.encodings.load(Ordering::Relaxed)
    }
}

impl AudioEncoder for FakeAudio {
    fn placeholder(&self) -> &str {
        "</tool_response>"
    }

    fn token(&self) -> &str {
        "</tool_response>"
    }

    fn layout(&self, samples: usize) -> Result<MediaLayout> {
        let count = samples.div_ceil(SAMPLES).min(MAX_ROWS);
        Ok(MediaLayout::enclosed("(", MediaRows::sequential(count, AttentionKind::Causal), ")"))
    }

    fn max_samples(&self) -> Option<usize> {
        Some(MAX_SAMPLES)
    }

    fn encode(&self, audio: &Audio) -> Result<EncodedMedia> {
        self.encodings.fetch_add(1, Ordering::Relaxed);
        let samples = audio.samples();
        let rows = self.layout(samples.len())?.rows();
        let seed = samples
            .iter()
            .fold(mix(samples.len() as u64), |state, sample| mix(state ^ u64::from(sample.to_bits())));
        Ok(encoded(seed, rows))
    }
}
