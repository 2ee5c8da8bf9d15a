//! An audio file (WAV, FLAC, MP3, Ogg Vorbis): decoding within limits gives finite samples, as many as the
//! header declares, and each model family as many tokens as its length has, or an error.
#![no_main]

mod panics;

use libfuzzer_sys::fuzz_target;
use lm_media::families::{Gemma4Audio, GraniteSpeech};
use lm_media::{Audio, AudioLimits, SAMPLE_RATE, audio_length};

/// Short audio clips: the fuzzer looks for files, not for memory.
const LIMITS: AudioLimits = AudioLimits { max_bytes: 1 << 16, max_seconds: 4 };

fuzz_target!(init: panics::end_at_own_panics(), |bytes: &[u8]| {
    let length = audio_length(bytes, &LIMITS);
    let Ok(audio) = Audio::decode(bytes, &LIMITS) else { return };
    let samples = audio.samples();
    assert!((1..=LIMITS.max_seconds as usize * SAMPLE_RATE).contains(&samples.len()), "{audio:?}");
    assert!(samples.iter().all(|sample| sample.is_finite()));
    if let Some(length) = length.expect("a header") {
        assert_eq!(length, samples.len());
    }
    let gemma = Gemma4Audio::default();
    if let Ok(features) = gemma.features(&audio) {
        assert_eq!(features.frames().div_ceil(4), gemma.tokens(samples.len()).expect("tokens"));
    }
    let granite = GraniteSpeech::default();
    if let Ok(features) = granite.features(&audio) {
        let windows = features.frames().div_ceil(granite.projector_window);
        let tokens = windows * (granite.projector_window / granite.downsample);
        assert_eq!(tokens, granite.tokens(samples.len()).expect("tokens"));
    }
});
